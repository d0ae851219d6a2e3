import { type KubeClient, KubeError } from "@slipway/controller-runtime";
import { expect, it } from "vitest";
import { newSecret, replaceSecret } from "./secret.ts";

// Shows: docs/webhooks.md#errors: 409 | `WEBHOOK_CONFLICT`
it("a secret is not written over another that came between", async () => {
  const kube = {
    getOrUndefined: async () => ({ metadata: { uid: "u", resourceVersion: "1" }, data: { current: "b2xk" } }),
    patch: async () => {
      throw new KubeError({ status: 409, reason: "Conflict", message: "the object has been modified" });
    },
  } as unknown as KubeClient;
  await expect(replaceSecret(kube, "acme", "w1", newSecret(), new Date())).rejects.toMatchObject({
    status: 409,
    code: "WEBHOOK_CONFLICT",
  });
});

it("no two secrets are the same", () => {
  expect(newSecret()).not.toBe(newSecret());
});

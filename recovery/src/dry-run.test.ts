import { type KubeClient, KubeError, type KubernetesObject } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import { createDry, dryObject } from "./dry-run.ts";

test("a Service gives up its node's ports, and an object its namespace, its status and what it blocks", () => {
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "db", namespace: "slipway-org-acme" },
    spec: { type: "NodePort", ports: [{ name: "sql", port: 5432, nodePort: 30_001 }] },
  };
  expect(dryObject(service, "scratch")).toEqual({
    ...service,
    metadata: { name: "db", namespace: "scratch" },
    spec: { type: "NodePort", ports: [{ name: "sql", port: 5432 }] },
  });
  const owner = { apiVersion: "slipway.dev/v1alpha1", kind: "Project", name: "p", uid: "u" };
  const build = {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Build",
    metadata: { name: "b", namespace: "n", ownerReferences: [{ ...owner, blockOwnerDeletion: true }] },
    status: { phase: "success" },
  };
  const { status: _, ...rest } = build;
  const metadata = { name: "b", namespace: "scratch", ownerReferences: [owner] };
  expect(dryObject(build, "scratch")).toEqual({ ...rest, metadata });
  const claim = { apiVersion: "slipway.dev/v1alpha1", kind: "DomainClaim", metadata: { name: "a.example" } };
  expect(dryObject(claim, "scratch")).toEqual(claim);
});

const objects: KubernetesObject[] = ["a", "b"].map((name) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace: "slipway-org-acme", uid: name },
}));
async function* each() {
  yield* objects;
}
/** An apiserver that refuses what is named b. */
const refusing = (status: number, reason: string) =>
  ({
    create: async (_: unknown, object: KubernetesObject, { dryRun }: { dryRun: boolean }) => {
      expect(dryRun).toBe(true);
      if (object.metadata?.name === "b") {
        throw new KubeError({ status, reason, message: `b is ${reason}` });
      }
      return object;
    },
  }) as unknown as KubeClient;

test("an object that the apiserver refuses is named; one that exists is not refused", async () => {
  await expect(createDry(refusing(422, "Invalid"), "scratch", each(), new Map())).rejects.toThrow(
    "refuses 1 objects, such as Secret slipway-org-acme/b: b is Invalid",
  );
  expect(await createDry(refusing(409, "AlreadyExists"), "scratch", each(), new Map())).toEqual({
    Secret: 2,
  });
});

test("an apiserver that does not answer is not the backup's fault", async () => {
  const away = createDry(refusing(503, "ServiceUnavailable"), "scratch", each(), new Map());
  await expect(away).rejects.toThrow(/^b is ServiceUnavailable$/);
});

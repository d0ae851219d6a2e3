import { resources } from "@slipway/controller-runtime";
import { organizationNamespace } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";

let harness: FakeHarness;
let headers: Record<string, string>;

beforeAll(async () => {
  harness = await startFakeHarness();
  headers = harness.key("acme", "project.envs.read on project:*");
  await harness.project("acme", "shop", { envsFrom: [{ name: "mine" }, { name: "gone" }] });
  await secret("mine", { A: "MQ==" });
});
afterAll(() => harness.close());

const namespace = organizationNamespace("acme");
const secret = (name: string, data: Record<string, string>) =>
  harness.kube.create(resources.secrets, { metadata: { name, namespace }, data } as object);
const read = () => harness.app.inject({ url: "/v1/project/shop/envs", headers });

describe("GET /v1/project/:id/envs", () => {
  // Shows: docs/applications.md#errors-other-operations: GET envs | 409 `ENVIRONMENT_INCOMPLETE`: a
  it("is 409 and names the Secret that is missing, instead of a part for the whole", async () => {
    const response = await read();
    expect(response.statusCode).toBe(409);
    expect(response.json()).toMatchObject({
      status: "failed",
      code: "ENVIRONMENT_INCOMPLETE",
      message: expect.stringContaining("Secret gone"),
      secret: "gone",
    });
    await secret("gone", { B: "Mg==" });
    expect((await read()).json().data).toEqual([
      { name: "A", value: "1", source: { type: "secret", name: "mine" } },
      { name: "B", value: "2", source: { type: "secret", name: "gone" } },
    ]);
  });
});

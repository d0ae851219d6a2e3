import type { Store } from "@slipway/analytics";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { type LogDrain, organizationNamespace } from "@slipway/crds";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { Analytics } from "../analytics/analytics.ts";
import { logDrainResource } from "../resources.ts";

/** Log drains over a real kube-apiserver with the API server's own roles. */

let harness: RealHarness;
let organizationId: string;
let headers: Record<string, string>;
beforeAll(async () => {
  // Nothing here reads the store.
  harness = await startRealHarness({ analytics: new Analytics({} as Store) });
  ({ id: organizationId, headers } = await harness.organization());
});
afterAll(() => harness?.close());

const DRAINS = "/v1/organization/log-drains";
const send = (method: "GET" | "POST" | "PATCH" | "DELETE", url: string, payload?: object) =>
  harness.app.inject({ method, url, headers, ...(payload ? { payload } : {}) });

it("a drain is created, changed, listed and deleted", async () => {
  const namespace = organizationNamespace(organizationId);
  const created = await send("POST", DRAINS, {
    name: "Observability",
    otlp_http: { endpoint: "https://otlp.example.com/tenant" },
    headers: [{ name: "Authorization", value: "Bearer a" }],
  });
  expect(created.statusCode, created.body).toBe(201);
  const { id } = created.json().data;
  const pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
  const patched = await send("PATCH", `${DRAINS}/${id}`, {
    name: "Other",
    ca: pem,
    headers: [{ name: "X-Token", value: "b" }],
  });
  expect(patched.statusCode, patched.body).toBe(200);
  const listed = await send("GET", DRAINS);
  expect(listed.json().data.log_drains).toMatchObject([{ id, name: "Other", ca: pem, status: "pending" }]);
  const { spec } = await harness.admin.get<LogDrain>(logDrainResource, { namespace, name: id });
  const secret = await harness.admin.get<KubernetesObject & { data?: object }>(resources.secrets, {
    namespace,
    name: spec.secretRef?.name ?? "",
  });
  expect(secret.data).toEqual({ "header.X-Token": Buffer.from("b").toString("base64") });
  expect((await send("DELETE", `${DRAINS}/${id}`)).statusCode).toBe(200);
  await eventually(
    "it to be deleted",
    async () => (await harness.admin.getOrUndefined(logDrainResource, { namespace, name: id })) === undefined,
  );
});

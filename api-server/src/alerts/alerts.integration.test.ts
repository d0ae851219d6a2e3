import { organizationNamespace, type Project } from "@slipway/crds";
import { changeAlertStates } from "@slipway/ledger";
import { afterAll, beforeAll, expect, it } from "vitest";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";
import { projectResource } from "../resources.ts";

/** Alerts over a real kube-apiserver with the API server's own roles, and a real PostgreSQL. */

let harness: RealHarness;
let organizationId: string;
let headers: Record<string, string>;
beforeAll(async () => {
  harness = await startRealHarness();
  ({ id: organizationId, headers } = await harness.organization());
});
afterAll(() => harness?.close());

const put = (id: string, alerts: object[]) =>
  harness.app.inject({ method: "PUT", url: `/v1/project/${id}/alerts`, headers, payload: { alerts } });
const read = (id: string) => harness.app.inject({ url: `/v1/project/${id}/alerts`, headers });

// Shows: docs/alerts.md#over-v1: `PUT /v1/project/:id/alerts`
// Shows: docs/alerts.md#over-v1: 400 `VALIDATION_FAILED`
// Shows: docs/alerts.md#over-v1: 402 `NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN`
it("rules are set, read with their states, and removed", async () => {
  await harness.project(organizationId, "palerts", { ...exampleSpec, plan: "basic" });
  expect((await read("palerts")).json().data).toEqual({ alerts: [] });
  const rules = [
    { metric: "memory", threshold: 90 },
    { name: "errors", metric: "error_rate", threshold: 5, for_seconds: 60 },
    { metric: "failed_deployment" },
  ];
  const changed = await put("palerts", rules);
  expect(changed.statusCode, changed.body).toBe(200);
  const shown = [
    { name: "memory", metric: "memory", threshold: 90, for_seconds: 300, state: "no_data" },
    { name: "errors", metric: "error_rate", threshold: 5, for_seconds: 60, state: "no_data" },
    { name: "failed_deployment", metric: "failed_deployment", state: "no_data" },
  ];
  expect(changed.json().data).toEqual({ alerts: shown });

  const ref = { namespace: organizationNamespace(organizationId), name: "palerts" };
  const live = await harness.admin.get<Project>(projectResource, ref);
  expect(live.spec.alerts?.map(({ name }) => name)).toEqual(["memory", "errors", "failed_deployment"]);
  const projectUid = live.metadata.uid ?? "";
  const key = { organizationId, projectId: "palerts", projectUid, name: "memory", metric: "memory" };
  const change = { ...key, before: undefined, state: "firing", threshold: 90, value: 96.4 } as const;
  const { recorded } = await changeAlertStates(harness.ledger, [change], new Date());
  const since = recorded[0]?.since.toISOString();
  const firing = { ...shown[0], state: "firing", since, value: 96.4 };
  expect((await read("palerts")).json().data.alerts).toEqual([firing, ...shown.slice(1)]);

  expect(statusAndCode(await put("palerts", [{ metric: "cpu" }]))).toEqual([400, "VALIDATION_FAILED"]);
  expect(statusAndCode(await put("palerts", [{ metric: "missed_run" }]))).toEqual([400, "VALIDATION_FAILED"]);
  const twice = [{ metric: "failed_deployment" }, { metric: "failed_deployment" }];
  expect(statusAndCode(await put("palerts", twice))).toEqual([400, "VALIDATION_FAILED"]);
  expect((await put("palerts", [])).json().data).toEqual({ alerts: [] });
  expect((await harness.admin.get<Project>(projectResource, ref)).spec.alerts).toBeUndefined();

  await harness.project(organizationId, "pfree", { ...exampleSpec, plan: "free" });
  const refused = await put("pfree", [{ metric: "memory", threshold: 90 }]);
  expect(statusAndCode(refused)).toEqual([402, "NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN"]);
  expect((await put("pfree", [{ metric: "failed_deployment" }])).statusCode).toBe(200);
});

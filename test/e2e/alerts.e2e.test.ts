/** Alerts on the stack: requests through the ingress and samples of nodes decide, and each change is one event. */
import { afterAll, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress, untilServing } from "./support/ingress.ts";

const call = apiClient();
const WEBHOOKS = "/v1/organization/webhooks";
const made: string[] = [];
let webhook: string | undefined;
afterAll(async () => {
  if (webhook !== undefined) {
    await call("DELETE", `${WEBHOOKS}/${webhook}`);
  }
  await deleteProjects(call, made);
});

interface Alert {
  readonly name: string;
  readonly state: string;
  readonly value?: number;
}

// Shows: docs/alerts.md#metrics: `cpu`, `memory`
// Shows: docs/alerts.md#metrics: `error_rate`
test("requests that fail fire an alert, which ends with others that succeed, and memory is measured", async () => {
  const { project_id: id, domain } = await createProject(call, httpProject(uniqueName("alerts")));
  made.push(id);
  // The receiver's address is refused: what is recorded for it is enough here.
  const created = await call<{ id: string }>("POST", WEBHOOKS, {
    ...{ url: "https://10.255.255.1/", project_ids: [id] },
    event_types: ["alert.firing", "alert.resolved"],
  });
  expect(created.status).toBe(201);
  webhook = created.body.data?.id;
  const alerts = [
    { metric: "error_rate", threshold: 50, for_seconds: 120 },
    { metric: "memory", threshold: 100, for_seconds: 60 },
    { metric: "failed_deployment" },
  ];
  expect((await call("PUT", `/v1/project/${id}/alerts`, { alerts })).status).toBe(200);
  await untilStatus(call, id, "running");
  await untilServing(domain);
  const request = async (path: string, count: number) => {
    for (let index = 0; index < count; index += 1) {
      await throughIngress(domain, path);
    }
  };
  // Requests go on meanwhile: those of the last two minutes decide.
  const until = (path: string, ...states: string[]) =>
    eventually(
      async () => {
        await request(path, 2);
        const { body } = await call<{ alerts: Alert[] }>("GET", `/v1/project/${id}/alerts`);
        expect(body.data?.alerts.map(({ state }) => state)).toMatchObject(states);
        return body.data?.alerts ?? [];
      },
      { within: 300_000, every: 1_000 },
    );
  await request("/status/500", 60);
  const [errors, memory] = await until("/status/500", "firing", "ok", "ok");
  expect(errors?.value).toBeGreaterThanOrEqual(50);
  expect(memory?.value).toBeGreaterThan(0);
  await until("/status/200", "ok", "ok", "ok");
  const { body } = await call<{ deliveries: { payload: string }[] }>(
    "GET",
    `${WEBHOOKS}/${webhook}/deliveries`,
  );
  const events = (body.data?.deliveries ?? []).map(({ payload }) => JSON.parse(payload)).toReversed();
  expect(events.map(({ type, data }) => [type, data.alert, data.reason])).toEqual([
    ["alert.firing", "error_rate", undefined],
    ["alert.resolved", "error_rate", "recovered"],
  ]);
}, 900_000);

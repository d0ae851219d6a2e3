import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  readProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { type Counter, createCounter } from "./support/counter.ts";
import { eventually } from "./support/eventually.ts";
import { replaceLeader } from "./support/operator.ts";
import { createOrganization } from "./support/organization.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { traffic } from "./support/traffic.ts";

/** One-off runs. Each of them requests a path of its own of another project of the organization, whose log shows how often it ran. */

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const made: string[] = [];
let counter: Counter;

beforeAll(async () => {
  counter = await createCounter(call);
  made.push(counter.id);
});
afterAll(() => deleteProjects(call, made));

interface Run {
  readonly id: string;
  readonly status: string;
  readonly reason?: string;
  readonly command?: readonly string[];
  readonly deployment_id?: string;
  readonly exit_code?: number;
  readonly duration_seconds?: number;
  readonly billed_minutes?: number;
  readonly plan?: string;
  readonly amount?: number;
}

async function application(
  name: string,
  config: Record<string, unknown> = {},
): Promise<{ id: string; domain: string }> {
  const { project_id: id, domain } = await createProject(call, httpProject(uniqueName(name), config));
  made.push(id);
  await untilStatus(call, id, "running");
  return { id, domain };
}

async function start(id: string, command: string[], more: object = {}): Promise<string> {
  const answer = await call<{ run: { id: string } }>("POST", `/v1/project/${id}/runs`, { command, ...more });
  expect(answer).toMatchObject({ status: 202, body: { status: "success" } });
  return answer.body.data?.run.id ?? "";
}

async function read(id: string, runId: string): Promise<Run> {
  const answer = await call<{ run: Run }>("GET", `/v1/project/${id}/runs/${runId}`);
  expect(answer.status).toBe(200);
  return answer.body.data?.run as Run;
}

const until = (id: string, runId: string, ...wanted: string[]) =>
  eventually(
    async () => {
      const run = await read(id, runId);
      expect(wanted).toContain(run.status);
      return run;
    },
    { every: 250 },
  );

const logOf = async (id: string, runId: string): Promise<string> => {
  const answer = await call<{ logs: string }>("GET", `/v1/project/${id}/runs/${runId}/logs`);
  return answer.body.data?.logs ?? `answered ${answer.status}`;
};

const podsOf = async (id: string) =>
  (await cluster.core.listNamespacedPod({ namespace, labelSelector: `slipway.dev/one-off-run=${id}` })).items;

// Shows: docs/applications.md#one-off-runs: it has image, variables, resources and confinement of an instance
// Shows: docs/applications.md#one-off-runs: it costs a sixtieth of the hour's price of its plan
// Shows: docs/applications.md#one-off-runs: the last 50 KiB of its log are kept
test("a command runs once beside the instances, with its exit code, log and charge, and no request is lost", async () => {
  const { id, domain } = await application("runs");
  const served = traffic(domain);
  const name = uniqueName("once");
  const run = await start(id, counter.command(name, 5_000, 3));
  await until(id, run, "running");
  await eventually(async () => expect(await logOf(id, run)).toBe("v1 migrates\n"), { every: 250 });
  const [pod] = await podsOf(id);
  expect(pod?.spec?.containers[0]?.image).toContain("sample-http");
  expect(pod?.metadata?.labels).not.toHaveProperty("slipway.dev/project");
  const labelSelector = `slipway.dev/project=${id}`;
  expect((await cluster.core.listNamespacedPod({ namespace, labelSelector })).items).toHaveLength(1);
  const ended = await until(id, run, "failed");
  expect(ended).toMatchObject({ exit_code: 3, billed_minutes: 1 });
  expect(ended.deployment_id).toBe((await readProject(call, id)).last_deployment?.id);
  await eventually(async () =>
    expect(await logOf(id, run)).toBe("v1 migrates\nends with 3, as it was asked to\n"),
  );
  expect(await counter.reports(name)).toEqual(["v1"]);
  const listed = await call<{ runs: Run[] }>("GET", `/v1/project/${id}/runs?status=failed`);
  expect(listed.body.data?.runs.map((one) => one.id)).toEqual([run]);
  await eventually(async () => {
    const costs = await call<{ totals: { executed_runs: number; total_amount: number }[] }>(
      "GET",
      `/v1/project/${id}/runs/cost-summary`,
    );
    expect(costs.body.data?.totals[0]).toMatchObject({ executed_runs: 1, total_amount: ended.amount });
  });
  const report = await served.stop();
  expect(report.failures).toEqual([]);
  expect(report.versions).toEqual(["v1"]);
  await eventually(async () => expect(await podsOf(id)).toEqual([]));
});

// Shows: docs/applications.md#one-off-runs: the image and the variables are those of the version that serves
test("while a version is rolled out that never starts, a run has the one that serves", async () => {
  const { id } = await application("rolls");
  const image = stack.imageHttp.replace(/:[^:/]*$/, ":does-not-exist");
  expect((await call("PATCH", `/v1/project/${id}/image`, { image })).status).toBe(200);
  await eventually(async () =>
    expect((await readProject(call, id)).last_deployment?.status).toBe("in_progress"),
  );
  const name = uniqueName("serves");
  const run = await start(id, counter.command(name, 1, 0));
  expect(await until(id, run, "succeeded", "failed")).toMatchObject({ status: "succeeded", exit_code: 0 });
  expect(await counter.reports(name)).toEqual(["v1"]);
});

// Shows: docs/applications.md#one-off-runs: it begins once and is charged once
test("a run begins once though the operator is killed before and while it runs", async () => {
  const { id } = await application("killed");
  const name = uniqueName("kills");
  const [run] = await Promise.all([start(id, counter.command(name, 30_000, 0)), replaceLeader()]);
  await until(id, run, "running");
  await replaceLeader();
  const ended = await until(id, run, "succeeded");
  expect(ended).toMatchObject({ exit_code: 0, billed_minutes: 1 });
  expect(await counter.reports(name)).toEqual(["v1"]);
  await eventually(async () => {
    const costs = await call<{ totals: { executed_runs: number }[] }>(
      "GET",
      `/v1/project/${id}/runs/cost-summary`,
    );
    expect(costs.body.data?.totals[0]?.executed_runs).toBe(1);
  });
});

// Shows: docs/applications.md#one-off-runs: cancelling is that of [job runs]
// Shows: docs/applications.md#one-off-runs: `timeout_seconds`, 10 to 3,600
// Shows: docs/applications.md#one-off-runs: deletion of the project cancels its runs
test("runs are cancelled, end by their limit, and end with their project", async () => {
  const { id } = await application("ends");
  const name = uniqueName("ends");
  const cancelled = await start(id, counter.command(name, 600_000, 0));
  await until(id, cancelled, "running");
  const answers = await Promise.all(
    [0, 1].map(() => call<{ run: Run }>("POST", `/v1/project/${id}/runs/${cancelled}/cancel`)),
  );
  for (const answer of answers) {
    expect(answer).toMatchObject({
      status: 200,
      body: { data: { run: { id: cancelled, status: "cancelled", billed_minutes: 1 } } },
    });
  }
  const late = await start(id, counter.command(name, 600_000, 0), { timeout_seconds: 10 });
  const ended = await until(id, late, "deadline_exceeded");
  expect(ended.duration_seconds).toBeGreaterThanOrEqual(10);
  expect(ended.duration_seconds).toBeLessThan(50);
  const last = await start(id, counter.command(name, 600_000, 0));
  await until(id, last, "running");
  await eventually(
    async () => expect([200, 409]).toContain((await call("DELETE", `/v1/project/${id}`)).status),
    {
      within: 90_000,
    },
  );
  await eventually(async () => expect(await podsOf(id)).toEqual([]));
});

// Shows: docs/applications.md#one-off-runs: 5 of a project (1 on a plan that costs nothing) and 20
// Shows: docs/applications.md#one-off-runs: a project that is paused, or of which nothing has ever
test("what may not run is refused, and what belongs to others is unknown", async () => {
  const { id } = await application("bounds");
  const name = uniqueName("bounds");
  const runs: string[] = [];
  for (let count = 0; count < 5; count += 1) {
    runs.push(await start(id, counter.command(name, 600_000, 0)));
  }
  const command = counter.command(name, 1, 0);
  expect(await call("POST", `/v1/project/${id}/runs`, { command })).toMatchObject({
    status: 409,
    body: { code: "RUN_LIMIT_REACHED", limit: 5 },
  });
  const stranger = apiClient((await createOrganization("Stranger")).api_key);
  for (const [method, path] of [
    ["GET", ""],
    ["GET", "/logs"],
    ["POST", "/cancel"],
  ] as const) {
    const { status } = await stranger(method, `/v1/project/${id}/runs/${runs[0]}${path}`);
    expect([403, 404]).toContain(status);
  }
  await Promise.all(runs.map((run) => call("POST", `/v1/project/${id}/runs/${run}/cancel`)));
  expect((await call("POST", `/v1/project/${id}/pause`)).status).toBe(200);
  expect(await call("POST", `/v1/project/${id}/runs`, { command })).toMatchObject({
    status: 409,
    body: { code: "PROJECT_PAUSED" },
  });
});

// Shows: docs/applications.md#one-off-runs: the last 50 KiB of its log are kept
test("of a run that floods its log the end is kept, and can be read meanwhile", async () => {
  const { id } = await application("floods");
  const run = await start(id, ["/sample-http", "flood", "200000000"]);
  await until(id, run, "running", "succeeded");
  for (let reads = 0; reads < 5; reads += 1) {
    expect(Buffer.byteLength(await logOf(id, run))).toBeLessThanOrEqual(51_200);
    await sleep(500);
  }
  await until(id, run, "succeeded");
  await eventually(async () => expect(await logOf(id, run)).toMatch(/x\nwrote 200000000\n$/));
});

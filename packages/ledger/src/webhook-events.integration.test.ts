import { type EventType, eventTypes } from "@slipway/crds";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { jobRun } from "../../../test/kit/ledger/charged-rows.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import {
  type BuildRow,
  createWebhook,
  type Deployment,
  listWebhookDeliveries,
  recordBuild,
  recordDeployment,
  recordJobRuns,
} from "./index.ts";

/** The events of what the ledger records: in the same transaction, once. */

let test: TestJobLedger;

beforeAll(async () => {
  test = await startJobLedger();
});
afterAll(() => test?.stop());
beforeEach(async () => {
  await test.empty();
  await sql`truncate webhooks, webhook_deliveries, deployments, builds cascade`.execute(test.ledger);
  await subscribe([...eventTypes]);
});

async function subscribe(event_types: EventType[]): Promise<void> {
  const url = { url: "https://hooks.example.com/", host: "hooks.example.com:443" };
  const all = { description: null, event_types, project_ids: null };
  await createWebhook(test.ledger, { id: "w1", organization_id: "acme", ...url, ...all }, 20);
  await sql`update webhooks set subscribed_since = now() - interval '1 hour'`.execute(test.ledger);
}
async function events(): Promise<{ type: string; data: Record<string, unknown> }[]> {
  const query = { organizationId: "acme", webhookId: "w1", limit: 100, offset: 0 };
  const { deliveries } = await listWebhookDeliveries(test.ledger, query);
  return deliveries.toReversed().map(({ payload }) => JSON.parse(payload));
}
const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000);

const minuteAgo = (minutes: number) => new Date((Math.floor(Date.now() / 60_000) - minutes) * 60_000);

const deployment: Deployment = {
  id: "d1",
  organization_id: "acme",
  project_id: "pshop",
  project_uid: "u1",
  created_at: ago(60),
  finished_at: null,
  status: "in_progress",
  updated_image: true,
  image: "registry.example/app:1",
  digest: null,
  settings_hash: "hash",
  message: null,
};

// Shows: docs/webhooks.md#events: `deployment.succeeded`, `deployment.failed` | a deployment
it("a deployment's end is an event, and another one where it comes to serve after it has failed", async () => {
  const failed: Deployment = {
    ...deployment,
    status: "failed",
    finished_at: ago(9),
    message: "Nothing answers.",
  };
  const served: Deployment = { ...deployment, status: "succeeded", finished_at: ago(5) };
  for (const row of [deployment, failed, failed, served, served, failed]) {
    await recordDeployment(test.ledger, row);
  }
  expect(await events()).toMatchObject([
    {
      type: "deployment.failed",
      data: {
        organization_id: "acme",
        project_id: "pshop",
        deployment_id: "d1",
        message: "Nothing answers.",
      },
    },
    { type: "deployment.succeeded", data: { deployment_id: "d1", image: "registry.example/app:1" } },
  ]);
});

it("a deployment that was superseded is no event", async () => {
  await recordDeployment(test.ledger, { ...deployment, status: "superseded", finished_at: ago(9) });
  expect(await events()).toEqual([]);
});

// Shows: docs/webhooks.md#events: `build.succeeded`, `build.failed` | a build
it("a build's end is an event", async () => {
  const build: BuildRow = {
    organization_id: "acme",
    project_id: "pshop",
    project_uid: "u1",
    id: "b1",
    triggered_by: "push",
    branch: "main",
    tag: null,
    commit_sha: null,
    commit_message: null,
    status: "pending",
    digest: null,
    error_code: null,
    error_message: null,
    created_at: ago(60),
    started_at: null,
    finished_at: null,
  };
  const failed: BuildRow = { ...build, status: "failed", finished_at: ago(9), error_code: "BUILD_FAILED" };
  for (const row of [build, failed, failed]) {
    expect(await recordBuild(test.ledger, row)).toBe(true);
  }
  await recordBuild(test.ledger, { ...build, id: "b2", status: "success", finished_at: ago(8) });
  await recordBuild(test.ledger, { ...build, id: "b3", status: "superseded", finished_at: ago(8) });
  expect(await events()).toMatchObject([
    { type: "build.failed", data: { build_id: "b1", branch: "main", error_code: "BUILD_FAILED" } },
    { type: "build.succeeded", data: { build_id: "b2" } },
  ]);
});

// Shows: docs/webhooks.md#events: `run.failed` | a run
it("a run that failed is an event, charged or sent again", async () => {
  const runs = (["succeeded", "failed", "deadline_exceeded", "cancelled"] as const).map((status, index) =>
    jobRun({ organization_id: "acme", scheduled_at: minuteAgo(30 - index), seconds: 5, status }),
  );
  const outcomes = async () => (await recordJobRuns(test.ledger, runs)).map(({ outcome }) => outcome);
  expect(await outcomes()).toEqual(runs.map(() => "recorded"));
  expect(await outcomes()).toEqual(runs.map(() => "already"));
  const found = await events();
  expect(found.map(({ type, data }) => [type, data.status]).sort()).toEqual([
    ["run.failed", "deadline_exceeded"],
    ["run.failed", "failed"],
  ]);
  const { rows } = await sql<{ charged: number }>`select count(*)::int as charged from charges`.execute(
    test.ledger,
  );
  expect(rows[0]?.charged).toBe(4);
});

it("a batch of runs costs one query where no webhook subscribes, and a few for all that failed", async () => {
  const minute = Math.floor(Date.now() / 60_000) - 50;
  const runs = Array.from({ length: 40 }, (_, index) => {
    const scheduled_at = new Date((minute + index) * 60_000);
    return jobRun({ organization_id: "acme", scheduled_at, seconds: 5, status: "failed" });
  });
  let queries = 0;
  const counted = test.ledger.withPlugin({
    transformQuery: ({ node }) => {
      queries += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const recorded = async (rows: typeof runs): Promise<number> => {
    queries = 0;
    await recordJobRuns(counted, rows);
    return queries;
  };
  await sql`update webhooks set disabled_at = now()`.execute(test.ledger);
  const without = await recorded(runs.slice(0, 2));
  await sql`update webhooks set disabled_at = null`.execute(test.ledger);
  const withWebhook = await recorded(runs.slice(2));
  expect(await events()).toHaveLength(38);
  // Besides: locks of the webhooks, the same query again, counts, and deliveries.
  expect(withWebhook - without).toBe(4);
});

it("nothing is recorded for an organization whose webhooks subscribe to something else", async () => {
  await sql`truncate webhooks cascade`.execute(test.ledger);
  await subscribe(["certificate.issued"]);
  await recordDeployment(test.ledger, { ...deployment, status: "failed", finished_at: ago(9) });
  expect(await events()).toEqual([]);
});

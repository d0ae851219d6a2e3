import { eventTypes } from "@slipway/crds";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import {
  type AlertChange,
  type AlertState,
  alertStatesOf,
  changeAlertStates,
  connectLedger,
  createWebhook,
  type Ledger,
  listAlertStates,
  listWebhookDeliveries,
  migrateToLatest,
  type RecordedAlert,
} from "./index.ts";

/** States of alerts in a real PostgreSQL, and the events of their changes. */

let postgres: TestPostgres;
let ledger: Ledger;
beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
});
afterAll(async () => {
  await ledger?.destroy();
  await postgres?.stop();
});
beforeEach(async () => {
  await sql`truncate webhooks, webhook_deliveries, webhook_skipped_events, alert_states`.execute(ledger);
  const url = { url: "https://hooks.example.com/", host: "hooks.example.com:443" };
  const all = { description: null, event_types: [...eventTypes], project_ids: null };
  await createWebhook(ledger, { id: "w1", organization_id: "acme", ...url, ...all }, 20);
});

const key = {
  organizationId: "acme",
  projectId: "pshop",
  projectUid: "u1",
  name: "memory",
  metric: "memory",
};
const change = (state: AlertState | undefined, before?: RecordedAlert, name = "memory"): AlertChange => ({
  ...{ ...key, name, threshold: 90, value: 96.4 },
  ...{ state, before },
});
const events = async () => {
  const query = { organizationId: "acme", webhookId: "w1", limit: 100, offset: 0 };
  const { deliveries } = await listWebhookDeliveries(ledger, query);
  return deliveries.toReversed().map(({ payload }) => JSON.parse(payload));
};
/** What has just been observed. */
const record = (changes: AlertChange[], at = new Date()) => changeAlertStates(ledger, changes, at);
async function recorded(state: AlertState, before?: RecordedAlert): Promise<RecordedAlert> {
  const { recorded: rows } = await record([change(state, before)]);
  return rows[0] as RecordedAlert;
}

// Shows: docs/alerts.md#what-is-promised: a change of a state and its event are recorded together
// Shows: docs/webhooks.md#events: `alert.firing`, `alert.resolved`
it("an alert fires and ends, each with one event", async () => {
  const firing = await recorded("firing");
  const ok = await recorded("ok", firing);
  await recorded("no_data", ok);
  const about = { organization_id: "acme", project_id: "pshop", alert: "memory", metric: "memory" };
  const since = { threshold: 90, value: 96.4, firing_since: firing.since.toISOString() };
  expect(await events()).toEqual([
    { type: "alert.firing", timestamp: firing.since.toISOString(), data: { ...about, ...since } },
    {
      type: "alert.resolved",
      timestamp: ok.since.toISOString(),
      data: { ...about, ...since, reason: "recovered" },
    },
  ]);
  expect(await alertStatesOf(ledger, "u1")).toMatchObject([{ ...key, state: "no_data", threshold: 90 }]);
  expect(await alertStatesOf(ledger, "u2")).toEqual([]);
});

it("an alert that fires again is another event", async () => {
  const firing = await recorded("firing");
  await recorded("firing", await recorded("ok", firing));
  expect((await events()).map(({ type }) => type)).toEqual([
    "alert.firing",
    "alert.resolved",
    "alert.firing",
  ]);
});

// Shows: docs/alerts.md#what-is-promised: states outlive the process that evaluates
it("of two processes that change the same, one does, also while they do so concurrently", async () => {
  const first = await Promise.all([1, 2, 3].map(() => record([change("firing")])));
  expect(first.map(({ changed }) => changed).toSorted()).toEqual([0, 0, 1]);
  const [firing] = await listAlertStates(ledger);
  const ends = await Promise.all([1, 2, 3].map(() => record([change("ok", firing)])));
  expect(ends.map(({ changed }) => changed).toSorted()).toEqual([0, 0, 1]);
  // One that has read what was before.
  expect((await record([change("no_data", firing)])).changed).toBe(0);
  expect(await events()).toHaveLength(2);
});

// Shows: docs/alerts.md#what-is-promised: states outlive the process that evaluates
it("what was observed a minute ago is not recorded, whatever has been since", async () => {
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000);
  expect(await record([change("firing")], ago(61))).toEqual({ recorded: [], changed: 0 });
  const { recorded: rows } = await record([change("firing")], ago(30));
  const late = [change("ok", rows[0]), change(undefined, rows[0])];
  for (const one of late) {
    expect((await record([one], ago(61))).changed).toBe(0);
  }
  expect(await listAlertStates(ledger)).toMatchObject([{ state: "firing" }]);
  expect(await events()).toHaveLength(1);
});

it("a rule that is gone ends its alert, and nothing where none was", async () => {
  const firing = await recorded("firing");
  const { recorded: rows } = await record([change("ok", undefined, "quiet")]);
  const done = await record([change(undefined, firing), change(undefined, rows[0], "quiet")]);
  expect(done).toEqual({ recorded: [], changed: 2 });
  expect(await listAlertStates(ledger)).toEqual([]);
  expect((await events()).map(({ type, data }) => `${type} ${data.reason}`)).toEqual([
    "alert.firing undefined",
    "alert.resolved rule_removed",
  ]);
});

it("a change whose event is not recorded is not made", async () => {
  await sql`alter table webhook_deliveries add constraint refused check (event_type <> 'alert.firing')`.execute(
    ledger,
  );
  try {
    await expect(record([change("firing")])).rejects.toThrow("refused");
  } finally {
    await sql`alter table webhook_deliveries drop constraint refused`.execute(ledger);
  }
  expect(await listAlertStates(ledger)).toEqual([]);
});

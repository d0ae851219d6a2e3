import type { EventType } from "@slipway/crds";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import {
  connectLedger,
  createWebhook,
  deleteWebhook,
  eventIdOf,
  failWebhookDelivery,
  findWebhook,
  finishWebhookDelivery,
  giveUpDisabledWebhooks,
  type LeaseBounds,
  type Ledger,
  leaseWebhookDeliveries,
  listSubscribers,
  listWebhookDeliveries,
  migrateToLatest,
  type NotificationEvent,
  readWebhookBacklog,
  recordEvent,
  recordEventFor,
  redeliverWebhook,
  retireWebhookDeliveries,
  updateWebhook,
} from "./index.ts";

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
  await sql`truncate webhooks, webhook_deliveries, webhook_skipped_events`.execute(ledger);
});

const DAY_MS = 86_400_000;
const types: EventType[] = ["deployment.failed", "deployment.succeeded"];
const hook = (
  id: string,
  more: { organization_id?: string; project_ids?: string[]; host?: string } = {},
  most = 2,
) =>
  createWebhook(
    ledger,
    {
      id,
      organization_id: "acme",
      url: `https://${id}.example.com/hook`,
      host: `${id}.example.com:443`,
      description: null,
      event_types: types,
      project_ids: null,
      ...more,
    },
    most,
  );
const happened = (key: string, more: Partial<NotificationEvent> = {}): NotificationEvent => ({
  organizationId: "acme",
  projectId: "pshop",
  type: "deployment.failed",
  key,
  occurredAt: new Date(),
  data: {},
  ...more,
});
const bounds: LeaseBounds = { most: 10, perOrganization: 10, perWebhook: 10, perHost: 10, leaseMs: 60_000 };
const lease = (more: Partial<LeaseBounds> = {}) => leaseWebhookDeliveries(ledger, { ...bounds, ...more });
const deliveriesOf = async (webhookId: string, organizationId = "acme") =>
  (await listWebhookDeliveries(ledger, { organizationId, webhookId, limit: 100, offset: 0 })).deliveries;

describe("webhooks", () => {
  it("are only so many of an organization, however many are created concurrently", async () => {
    const made = await Promise.all(["w1", "w2", "w3", "w4"].map((id) => hook(id)));
    expect(made.filter((one) => one !== undefined)).toHaveLength(2);
    expect(await hook("w5", { organization_id: "other" })).toBeDefined();
    expect((await listSubscribers(ledger)).map(({ organizationId }) => organizationId).sort()).toEqual([
      "acme",
      "other",
    ]);
  });

  it("are of their organization alone, and are deleted with their deliveries", async () => {
    await hook("w1");
    await recordEvent(ledger, happened("d1"));
    expect(await findWebhook(ledger, "other", "w1")).toBeUndefined();
    expect(await updateWebhook(ledger, "other", "w1", { isEnabled: false })).toBeUndefined();
    expect(await deleteWebhook(ledger, "other", "w1")).toBe(false);
    expect(await deleteWebhook(ledger, "acme", "w1")).toBe(true);
    expect(await deliveriesOf("w1")).toEqual([]);
  });

  it("that are switched off give up what waits, and get nothing until they are switched on", async () => {
    await hook("w1");
    await recordEvent(ledger, happened("d1"));
    expect(await updateWebhook(ledger, "acme", "w1", { isEnabled: false })).toMatchObject({
      disabled_reason: "requested",
    });
    expect(await deliveriesOf("w1")).toMatchObject([{ status: "failed", error: "webhook_disabled" }]);
    expect(await recordEvent(ledger, happened("d2"))).toBe(0);
    expect(await updateWebhook(ledger, "acme", "w1", { isEnabled: true })).toMatchObject({
      disabled_at: null,
    });
    expect(await recordEvent(ledger, happened("d3"))).toBe(1);
  });
});

describe("an event", () => {
  it("is recorded once for each webhook that subscribes to it, however often it is observed", async () => {
    await hook("w1");
    await hook("w2", { project_ids: ["pother"] });
    const event = happened("d1");
    await Promise.all([recordEvent(ledger, event), recordEvent(ledger, event), recordEvent(ledger, event)]);
    expect((await deliveriesOf("w1")).map(({ event_id }) => event_id)).toEqual([eventIdOf(event)]);
    expect(await deliveriesOf("w2")).toEqual([]);
    expect(await recordEvent(ledger, happened("b1", { type: "build.failed" }))).toBe(0);
  });

  it("of before the webhook, of long ago, or of a quiet time is not recorded", async () => {
    await hook("w1");
    expect(await recordEvent(ledger, happened("d1", { occurredAt: new Date(Date.now() - 60_000) }))).toBe(0);
    await sql`update webhooks set subscribed_since = now() - interval '9 days'`.execute(ledger);
    expect(await recordEvent(ledger, happened("d2", { occurredAt: new Date(Date.now() - 3 * DAY_MS) }))).toBe(
      0,
    );
    expect(await recordEvent(ledger, happened("d3", { quietSeconds: 60 }))).toBe(1);
    expect(await recordEvent(ledger, happened("d4", { quietSeconds: 60 }))).toBe(0);
    expect(await recordEvent(ledger, happened("d5", { quietSeconds: 60, projectId: "pother" }))).toBe(1);
  });

  it("that was left out is left out for good: over a bound, in a quiet time, or before the webhook was enabled", async () => {
    await hook("w1");
    await sql`update webhooks set subscribed_since = now() - interval '1 hour'`.execute(ledger);
    const [over, quiet, missed] = [
      happened("d2"),
      happened("d3", { quietSeconds: 60 }),
      happened("d4", { occurredAt: new Date(Date.now() - 10_000) }),
    ];
    expect(await recordEvent(ledger, happened("d1"))).toBe(1);
    expect(
      await recordEvent(ledger, over, { perHour: 1, mailsPerHour: 100, mailsPending: 100, pending: 10 }),
    ).toBe(0);
    expect(await recordEvent(ledger, quiet)).toBe(0);
    await updateWebhook(ledger, "acme", "w1", { isEnabled: false });
    expect(await recordEvent(ledger, missed)).toBe(0);
    await updateWebhook(ledger, "acme", "w1", { isEnabled: true });
    // Later, by another process that observes all of them: no bound is reached, and no time is quiet.
    await sql`update webhook_deliveries set created_at = now() - interval '2 hours'`.execute(ledger);
    for (const event of [over, quiet, missed]) {
      expect(await recordEvent(ledger, event)).toBe(0);
    }
    expect(await findWebhook(ledger, "acme", "w1")).toMatchObject({ dropped_events: "1" });
  });

  it("of before the webhook subscribed to its type or project is not recorded", async () => {
    await hook("w1");
    await sql`update webhooks set subscribed_since = now() - interval '1 hour'`.execute(ledger);
    const before = { occurredAt: new Date(Date.now() - 10_000) };
    await updateWebhook(ledger, "acme", "w1", { description: "Pages", event_types: types.toReversed() });
    expect(await recordEvent(ledger, happened("d1", before))).toBe(1);
    await updateWebhook(ledger, "acme", "w1", { event_types: ["run.failed", ...types] });
    expect(await recordEvent(ledger, happened("r1", { ...before, type: "run.failed" }))).toBe(0);
    expect(await recordEvent(ledger, happened("r2", { type: "run.failed" }))).toBe(1);
  });

  // Shows: docs/webhooks.md#limits: deliveries of an organization | 500
  it("over a bound is counted, and recorded by no other organization's fault", async () => {
    await hook("w1");
    await hook("w2", { organization_id: "other" });
    const limits = { perHour: 2, mailsPerHour: 100, mailsPending: 100, pending: 10 };
    for (const key of ["d1", "d2", "d3", "d4"]) {
      await recordEvent(ledger, happened(key), limits);
    }
    expect(await deliveriesOf("w1")).toHaveLength(2);
    expect(await findWebhook(ledger, "acme", "w1")).toMatchObject({ dropped_events: "2" });
    expect(await recordEvent(ledger, happened("d1", { organizationId: "other" }), limits)).toBe(1);
  });
});

describe("a delivery", () => {
  it("is leased by one process, and by another once the lease of the one that was killed has expired", async () => {
    await hook("w1");
    await recordEvent(ledger, happened("d1"));
    expect(await readWebhookBacklog(ledger, bounds)).toEqual({ isDue: true, lagMs: expect.any(Number) });
    const leased = (await Promise.all([lease(), lease(), lease()])).flat();
    expect(leased).toMatchObject([{ url: "https://w1.example.com/hook", lease: 1 }]);
    await sql`update webhook_deliveries set held_until = now() - interval '1 second'`.execute(ledger);
    const [again] = await lease();
    expect(again).toMatchObject({ lease: 2, attempts: 0 });
    // What the first one reports after that changes nothing.
    await failWebhookDelivery(ledger, leased[0] as never, { responseCode: 500 }, DAY_MS);
    expect(await deliveriesOf("w1")).toMatchObject([{ status: "pending", response_code: null }]);
    await finishWebhookDelivery(ledger, again as never, { responseCode: 204, responseBody: "" });
    expect(await deliveriesOf("w1")).toMatchObject([
      { status: "succeeded", attempts: 1, response_code: 204 },
    ]);
    expect(await findWebhook(ledger, "acme", "w1")).toMatchObject({ failing_since: null });
    expect(await readWebhookBacklog(ledger, bounds)).toEqual({ isDue: false, lagMs: 0 });
  });

  it("takes turns: of an organization, of a webhook and of a host only so many are sent at a time", async () => {
    await hook("w1", { host: "same:443" });
    await hook("w2", { organization_id: "other", host: "same:443" });
    for (const key of ["d1", "d2", "d3", "d4"]) {
      await recordEvent(ledger, happened(key));
      await recordEvent(ledger, happened(key, { organizationId: "other" }));
    }
    const first = await lease({ most: 2, perOrganization: 2 });
    expect(first.map(({ organizationId }) => organizationId).sort()).toEqual(["acme", "other"]);
    expect(await lease({ perOrganization: 1 })).toEqual([]);
    expect(await lease({ perHost: 2 })).toEqual([]);
    expect(await lease({ perWebhook: 2 })).toHaveLength(2);
    expect(await lease({ perWebhook: 2 })).toEqual([]);
  });

  it("of one organization that fills a host leaves places there to what another begins later", async () => {
    for (let index = 0; index < 9; index += 1) {
      await hook(`a${index}`, { organization_id: "attacker", host: "same:443" }, 20);
    }
    await hook("w1", { host: "same:443" });
    await recordEvent(ledger, happened("d1", { organizationId: "attacker" }));
    await recordEvent(ledger, happened("d2"));
    const shares = { perOrganization: 6, perWebhook: 2, perHost: 8 };
    const first = await lease(shares);
    expect(first.map(({ organizationId }) => organizationId).sort()).toEqual([
      "acme",
      ...Array(6).fill("attacker"),
    ]);
    // Those of the attacker are held until their leases expire, and what comes after is sent beside them.
    await recordEvent(ledger, happened("d3"));
    expect(await lease(shares)).toMatchObject([{ organizationId: "acme" }]);
  });

  it("is tried again, and a webhook that fails for long is disabled with what waits for it", async () => {
    await hook("w1");
    await recordEvent(ledger, happened("d1"));
    const [leased] = await lease();
    expect(
      await failWebhookDelivery(ledger, leased as never, { error: "timeout", retryMs: 5_000 }, DAY_MS),
    ).toBe(false);
    expect(await lease()).toEqual([]);
    await sql`update webhook_deliveries set due_at = now()`.execute(ledger);
    await sql`update webhooks set failing_since = now() - interval '2 days'`.execute(ledger);
    const [again] = await lease();
    expect(
      await failWebhookDelivery(ledger, again as never, { error: "timeout", retryMs: 5_000 }, DAY_MS),
    ).toBe(true);
    expect(await findWebhook(ledger, "acme", "w1")).toMatchObject({ disabled_reason: "failing" });
    expect(await deliveriesOf("w1")).toMatchObject([{ status: "failed" }]);
  });

  it("that has ended is sent again under its id", async () => {
    await hook("w1");
    const event = happened("d1");
    await recordEvent(ledger, event);
    const of = { organizationId: "acme", webhookId: "w1", eventId: eventIdOf(event) };
    expect(await redeliverWebhook(ledger, of)).toBe("pending");
    const [leased] = await lease();
    await failWebhookDelivery(ledger, leased as never, { responseCode: 500 }, DAY_MS);
    expect(await redeliverWebhook(ledger, { ...of, organizationId: "other" })).toBeUndefined();
    expect(await redeliverWebhook(ledger, of)).toBe("queued");
    expect(await lease()).toMatchObject([{ eventId: of.eventId, lease: 3, attempts: 0 }]);
  });

  it("never waits at a webhook that is disabled meanwhile", async () => {
    await hook("w1");
    const event = happened("d1");
    await recordEvent(ledger, event);
    await sql`update webhook_deliveries set status = 'failed', finished_at = now()`.execute(ledger);
    const of = { organizationId: "acme", webhookId: "w1", eventId: eventIdOf(event) };
    const begun: Promise<unknown>[] = [];
    await ledger.transaction().execute(async (tx) => {
      await sql`update webhooks set disabled_at = now()`.execute(tx);
      begun.push(
        recordEvent(ledger, happened("d2")),
        recordEventFor(ledger, { id: "w1" }, happened("d3")),
        redeliverWebhook(ledger, of),
      );
      await eventually("all of them to wait for the webhook", async () => {
        const { rows } = await sql<{ count: number }>`
          select count(*)::int as count from pg_stat_activity where wait_event_type = 'Lock'`.execute(ledger);
        return rows[0]?.count === 3;
      });
    });
    expect(await Promise.all(begun)).toEqual([0, "disabled", "disabled"]);
    expect(await deliveriesOf("w1")).toMatchObject([{ status: "failed" }]);
    expect(await recordEventFor(ledger, { id: "none" }, happened("d4"))).toBeUndefined();
  });

  it("that waits at a disabled webhook nevertheless is given up", async () => {
    await hook("w1");
    await recordEvent(ledger, happened("d1"));
    expect(await giveUpDisabledWebhooks(ledger)).toBe(0);
    await sql`update webhooks set disabled_at = now()`.execute(ledger);
    expect(await giveUpDisabledWebhooks(ledger)).toBe(1);
    expect(await deliveriesOf("w1")).toMatchObject([{ status: "failed", error: "webhook_disabled" }]);
  });

  it("whose lease has expired disables nothing, and neither does one that was sent to an earlier URL", async () => {
    await hook("w1");
    await recordEvent(ledger, happened("d1"));
    const [expired] = await lease();
    await sql`update webhook_deliveries set held_until = null`.execute(ledger);
    const [moved] = await lease();
    expect(await failWebhookDelivery(ledger, expired as never, { isGone: true }, DAY_MS)).toBe(false);
    expect(await findWebhook(ledger, "acme", "w1")).toMatchObject({ disabled_at: null, failing_since: null });
    await updateWebhook(ledger, "acme", "w1", { url: "https://w2.example.com/", host: "w2.example.com:443" });
    expect(await failWebhookDelivery(ledger, moved as never, { isGone: true }, DAY_MS)).toBe(false);
    expect(await findWebhook(ledger, "acme", "w1")).toMatchObject({ disabled_at: null, failing_since: null });
    expect(await lease()).toMatchObject([{ url: "https://w2.example.com/" }]);
  });

  it("is sent again though an attempt from before ends later", async () => {
    await hook("w1");
    await recordEvent(ledger, happened("d1"));
    const [before] = await lease();
    await updateWebhook(ledger, "acme", "w1", { isEnabled: false });
    await updateWebhook(ledger, "acme", "w1", { isEnabled: true });
    const of = { organizationId: "acme", webhookId: "w1", eventId: before?.eventId ?? "" };
    expect(await redeliverWebhook(ledger, of)).toBe("queued");
    await failWebhookDelivery(ledger, before as never, {}, DAY_MS);
    expect(await lease()).toHaveLength(1);
  });

  it("begins to fail again after a quiet time and at another URL: one failure disables no webhook", async () => {
    await hook("w1");
    await recordEvent(ledger, happened("d1"));
    const failAgain = async () => {
      await sql`update webhook_deliveries set due_at = now()`.execute(ledger);
      const [leased] = await lease();
      return failWebhookDelivery(ledger, leased as never, { responseCode: 500, retryMs: 1 }, 5 * DAY_MS);
    };
    expect(await failAgain()).toBe(false);
    await sql`
      update webhooks set failing_since = now() - interval '6 days', last_failed_at = now() - interval '2 days'`.execute(
      ledger,
    );
    expect(await failAgain()).toBe(false);
    await sql`update webhooks set failing_since = now() - interval '6 days'`.execute(ledger);
    await updateWebhook(ledger, "acme", "w1", { url: "https://w2.example.com/", host: "w2.example.com:443" });
    expect(await failAgain()).toBe(false);
    await sql`update webhooks set failing_since = now() - interval '6 days'`.execute(ledger);
    expect(await failAgain()).toBe(true);
  });

  it("and others are recorded, sent, sent again and given up concurrently without a deadlock", async () => {
    await hook("w1");
    await hook("w2");
    const limits = { perHour: 30, mailsPerHour: 100, mailsPending: 100, pending: 1_000 };
    const cycle = async (worker: number) => {
      for (let index = 0; index < 12; index += 1) {
        const event = happened(`${worker}/${index}`);
        await recordEvent(ledger, event, limits);
        const id = index % 2 === 0 ? "w1" : "w2";
        for (const leased of await lease({ most: 3 })) {
          await (index % 3 === 0
            ? finishWebhookDelivery(ledger, leased, { responseCode: 204 })
            : failWebhookDelivery(ledger, leased, { retryMs: 1, isGone: index % 5 === 0 }, DAY_MS));
        }
        await updateWebhook(ledger, "acme", id, { isEnabled: index % 4 !== 0 });
        await redeliverWebhook(ledger, { organizationId: "acme", webhookId: id, eventId: eventIdOf(event) });
        await retireWebhookDeliveries(ledger, { days: 30, perOrganization: 5 });
      }
    };
    await Promise.all([1, 2, 3, 4, 5].map(cycle));
    await giveUpDisabledWebhooks(ledger);
    const waiting = await sql`
      select from webhook_deliveries d join webhooks w on w.id = d.webhook_id
      where d.status = 'pending' and w.disabled_at is not null`.execute(ledger);
    expect(waiting.rows).toEqual([]);
  });

  it("is sent again only while fewer wait than may", async () => {
    await hook("w1");
    const [ended, waiting] = [happened("d1"), happened("d2")];
    await recordEvent(ledger, ended);
    await sql`update webhook_deliveries set status = 'failed', finished_at = now()`.execute(ledger);
    await recordEvent(ledger, waiting);
    const of = { organizationId: "acme", webhookId: "w1", eventId: eventIdOf(ended) };
    expect(await redeliverWebhook(ledger, of, { mailsPerHour: 100, mailsPending: 100, pending: 1 })).toBe(
      "full",
    );
    expect(await redeliverWebhook(ledger, of, { mailsPerHour: 100, mailsPending: 100, pending: 2 })).toBe(
      "queued",
    );
  });

  it("is not late while its organization or its host has its whole share", async () => {
    await hook("w1", { host: "same:443" });
    await hook("w2", { host: "same:443" });
    await recordEvent(ledger, happened("d1"));
    await sql`update webhook_deliveries set due_at = now() - interval '1 hour'`.execute(ledger);
    expect(await lease({ most: 1 })).toHaveLength(1);
    const lag = async (shares: { perOrganization: number; perHost: number }) =>
      (await readWebhookBacklog(ledger, shares)).lagMs;
    expect(await lag({ perOrganization: 1, perHost: 9 })).toBe(0);
    expect(await lag({ perOrganization: 9, perHost: 1 })).toBe(0);
    expect(await lag({ perOrganization: 9, perHost: 9 })).toBeGreaterThan(3_500_000);
  });

  // Shows: docs/webhooks.md#limits: a delivery that has ended | is kept
  it("is deleted once it ended long ago or is one of too many, in steps", async () => {
    await hook("w1");
    for (const key of ["d1", "d2", "d3", "d4", "d5"]) {
      await recordEvent(ledger, happened(key));
    }
    const keep = { days: 30, perOrganization: 2 };
    expect(await retireWebhookDeliveries(ledger, keep)).toBe(false);
    expect(await deliveriesOf("w1")).toHaveLength(5);
    await sql`update webhook_deliveries set status = 'failed', finished_at = now()`.execute(ledger);
    expect(await retireWebhookDeliveries(ledger, keep, 2)).toBe(true);
    expect(await retireWebhookDeliveries(ledger, keep, 2)).toBe(false);
    expect((await deliveriesOf("w1")).map(({ payload }) => payload)).toHaveLength(2);
    // Of those that are left, one was sent again lately, and the other one ended long ago.
    await sql`
      update webhook_deliveries set created_at = now() - interval '60 days', finished_at = now() - case
        when sequence = (select max(sequence) from webhook_deliveries) then interval '1 day' else interval '31 days' end`.execute(
      ledger,
    );
    await retireWebhookDeliveries(ledger, keep);
    expect(await deliveriesOf("w1")).toHaveLength(1);
  });
});

import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import {
  CONFIRMATION_EVENT,
  CONFIRMATION_LIMITS,
  confirmEmailRecipient,
  connectLedger,
  createEmailRecipient,
  createWebhook,
  deleteWebhook,
  EMAIL_TEST_EVENT,
  failWebhookDelivery,
  findWebhook,
  hasUnsubscribeToken,
  type LeasedWebhookDelivery,
  type Ledger,
  leaseWebhookDeliveries,
  listSubscribers,
  listWebhookDeliveries,
  listWebhooks,
  mailboxOf,
  migrateToLatest,
  readWebhookBacklog,
  recordEvent,
  recordEventFor,
  redeliverWebhook,
  requestConfirmation,
  retireWebhookDeliveries,
  unsubscribeRecipient,
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
  await sql`truncate webhooks, webhook_deliveries, webhook_skipped_events, email_confirmations`.execute(
    ledger,
  );
});

const organizationId = "acme";
let requests = 0;
const key = () => {
  requests += 1;
  return `k${requests}`;
};
const create = (id: string, email = `${id}@example.com`, organization = organizationId, code = "AAAA-2222") =>
  createEmailRecipient(
    ledger,
    {
      id,
      organization_id: organization,
      email,
      event_types: ["run.failed"],
      project_ids: null,
      unsubscribe_token: `token-of-${id}`,
    },
    { code, key: key() },
    20,
  );
const request = (id: string, code = "BBBB-3333") =>
  requestConfirmation(ledger, { organizationId, id, code, key: key() });
const confirm = (id: string, code: string) => confirmEmailRecipient(ledger, { organizationId, id, code });
const happened = (name: string, limits?: Parameters<typeof recordEvent>[2]) =>
  recordEvent(
    ledger,
    {
      organizationId,
      projectId: "p1",
      type: "run.failed",
      key: name,
      occurredAt: new Date(),
      data: {},
    },
    limits,
  );
const bounds = { most: 50, perOrganization: 50, perWebhook: 50, perHost: 50, leaseMs: 60_000 };
const lease = () => leaseWebhookDeliveries(ledger, bounds);
const logOf = async (webhookId: string) =>
  (await listWebhookDeliveries(ledger, { organizationId, webhookId, limit: 100, offset: 0 })).deliveries;
/** A webhook of the organization. */
const hook = () => {
  const settings = { url: "https://h.example/", host: "h.example:443", description: null };
  const wanted = { event_types: ["run.failed" as const], project_ids: null };
  return createWebhook(ledger, { id: "w1", organization_id: organizationId, ...settings, ...wanted }, 1);
};
const confirmed = async (id: string) => {
  await create(id);
  await confirm(id, "AAAA-2222");
};

describe("a recipient of e-mail", () => {
  // Shows: docs/email.md#confirmation: until it is confirmed
  it("gets nothing but its code until it has confirmed, and the code is in no log", async () => {
    await create("e1");
    expect(await happened("before")).toBe(0);
    expect(await listSubscribers(ledger)).toEqual([]);
    const test = { organizationId, projectId: null, type: EMAIL_TEST_EVENT, key: "t", data: {} } as const;
    expect(await recordEventFor(ledger, { id: "e1" }, { ...test, occurredAt: new Date() })).toBe(
      "unconfirmed",
    );
    const [mail] = await lease();
    expect(mail).toMatchObject({
      eventType: CONFIRMATION_EVENT,
      mail: { address: "e1@example.com", isConfirmed: false, confirmationCode: "AAAA-2222" },
    });
    expect(JSON.stringify(await logOf("e1"))).not.toContain("AAAA");
    expect(await confirm("e1", "AAAA-2222")).toMatchObject({ confirmation_code: null });
    expect(await listSubscribers(ledger)).toMatchObject([{ organizationId }]);
    expect(await happened("after")).toBe(1);
    const [event] = await lease();
    expect(event).toMatchObject({
      eventType: "run.failed",
      mail: { isConfirmed: true, confirmationCode: null },
    });
  });

  it("is no webhook, and no webhook is a recipient", async () => {
    await create("e1");
    await hook();
    expect((await listWebhooks(ledger, organizationId)).map(({ id }) => id)).toEqual(["w1"]);
    expect((await listWebhooks(ledger, organizationId, "email")).map(({ id }) => id)).toEqual(["e1"]);
    expect(await findWebhook(ledger, organizationId, "e1")).toBeUndefined();
    expect(await findWebhook(ledger, organizationId, "w1", "email")).toBeUndefined();
    expect(await request("w1")).toBeUndefined();
    expect(await confirm("w1", "AAAA-2222")).toBeUndefined();
  });

  it("is one of each address", async () => {
    await create("e1", "a@example.com");
    expect(await create("e2", "a@example.com")).toBe("exists");
    expect(await create("e3", "a@example.com", "other")).toMatchObject({ id: "e3" });
  });

  // Shows: docs/email.md#confirmation: a code
  it("confirms with its newest code alone, in a day and after few wrong ones", async () => {
    await create("e1");
    expect(await request("e1")).toBe("queued");
    expect(await confirm("e1", "AAAA-2222")).toBe("wrong");
    for (let wrong = 0; wrong < 4; wrong += 1) {
      expect(await confirm("e1", "CCCC-4444")).toBe("wrong");
    }
    expect(await confirm("e1", "BBBB-3333")).toBe("expired");
    await sql`truncate email_confirmations`.execute(ledger);
    expect(await request("e1", "DDDD-5555")).toBe("queued");
    await sql`update webhooks set confirmation_expires_at = now()`.execute(ledger);
    expect(await confirm("e1", "DDDD-5555")).toBe("expired");
    expect((await lease()).map(({ mail }) => mail?.confirmationCode)).toEqual([null, null, null]);
    await request("e1", "EEEE-6666");
    expect(await confirm("e1", "EEEE-6666")).toMatchObject({ id: "e1" });
    expect(await confirm("e1", "EEEE-6666")).toMatchObject({ id: "e1" });
    expect(await request("e1")).toBe("confirmed");
  });

  it("keeps its code where no other can be sent", async () => {
    await create("e1");
    const none = { perHour: 0, pending: 0, mailsPerHour: 0, mailsPending: 0 };
    const other = { organizationId, id: "e1", code: "BBBB-3333", key: key() };
    expect(await requestConfirmation(ledger, other, none)).toBe("full");
    expect(await ledger.selectFrom("email_confirmations").selectAll().execute()).toHaveLength(1);
    expect(await confirm("e1", "BBBB-3333")).toBe("wrong");
    expect(await confirm("e1", "AAAA-2222")).toMatchObject({ id: "e1" });
  });

  // Shows: docs/email.md#limits: confirmation mails
  it("is sent few codes, whatever is deleted, and whichever organizations request them together", async () => {
    const { perOrganizationHour, perMailboxHour, perMailboxDay } = CONFIRMATION_LIMITS;
    const asked = await Promise.all(
      Array.from({ length: perMailboxHour + 1 }, (_, index) =>
        create(`e${index}`, `victim+${index}@example.com`, `org${index}`),
      ),
    );
    expect(asked.filter((outcome) => outcome === "limited")).toHaveLength(1);
    await Promise.all(
      asked.map((one, index) => typeof one === "object" && deleteWebhook(ledger, `org${index}`, one.id)),
    );
    expect(await create("again", "Victim@example.com", "org9")).toBe("limited");
    expect(await findWebhook(ledger, "org9", "again", "email")).toBeUndefined();
    await sql`update email_confirmations set created_at = now() - interval '2 hours'`.execute(ledger);
    const rest = perMailboxDay - perMailboxHour;
    const later = await Promise.all(
      Array.from({ length: rest + 1 }, (_, index) =>
        create(`l${index}`, "victim@example.com", `org${index}`),
      ),
    );
    expect(later.filter((outcome) => outcome === "limited")).toHaveLength(1);
    await sql`
      insert into email_confirmations (organization_id, mailbox)
      select ${organizationId}, n || '@example.com' from generate_series(2, ${perOrganizationHour}::int) n`.execute(
      ledger,
    );
    const many = await Promise.all([0, 1, 2].map((index) => create(`m${index}`, `m${index}@example.com`)));
    expect(many.filter((outcome) => outcome === "limited")).toHaveLength(2);
    await sql`update email_confirmations set created_at = now() - interval '2 days'`.execute(ledger);
    await retireWebhookDeliveries(ledger, { days: 30, perOrganization: 100 });
    expect(await ledger.selectFrom("email_confirmations").selectAll().execute()).toEqual([]);
  });

  it("can be confirmed by one organization though another requests codes for its mailbox", async () => {
    const { perOrganizationMailboxDay: most } = CONFIRMATION_LIMITS;
    const asked = await Promise.all(
      Array.from({ length: most + 1 }, (_, index) =>
        create(`a${index}`, `victim+${index}@example.com`, "attacker"),
      ),
    );
    expect(asked.filter((outcome) => outcome === "limited")).toHaveLength(1);
    await sql`update email_confirmations set created_at = now() - interval '23 hours'`.execute(ledger);
    expect(await create("again", "victim@example.com", "attacker")).toBe("limited");
    expect(await create("e1", "victim@example.com")).toMatchObject({ id: "e1" });
  });

  it("has one mailbox whatever follows a plus sign", () => {
    expect(mailboxOf("On.Call+slipway@Example.com")).toBe("on.call@example.com");
  });

  // Shows: docs/email.md#mails: the link
  it("that unsubscribes gets nothing more, what waits included, until it confirms again", async () => {
    await confirmed("e1");
    await lease();
    await sql`update webhook_deliveries set status = 'succeeded', finished_at = now(), held_until = null`.execute(
      ledger,
    );
    await happened("r1");
    expect(await hasUnsubscribeToken(ledger, "token-of-e1")).toBe(true);
    expect(await unsubscribeRecipient(ledger, "token-of-e1")).toBe(true);
    expect(await unsubscribeRecipient(ledger, "token-of-e1")).toBe(true);
    expect(await unsubscribeRecipient(ledger, "other")).toBe(false);
    expect(await findWebhook(ledger, organizationId, "e1", "email")).toMatchObject({
      disabled_reason: "unsubscribed",
      confirmed_at: null,
    });
    expect(await lease()).toEqual([]);
    const [event] = await logOf("e1");
    expect(event).toMatchObject({ status: "failed", error: "webhook_disabled" });
    // Switched on by a client, it has not confirmed.
    await updateWebhook(ledger, organizationId, "e1", { isEnabled: true });
    expect(await happened("r2")).toBe(0);
    const again = { organizationId, webhookId: "e1", eventId: event?.event_id ?? "" };
    expect(await redeliverWebhook(ledger, again)).toBe("unconfirmed");
    await request("e1");
    await confirm("e1", "BBBB-3333");
    expect(await happened("r3")).toBe(1);
  });
});

describe("mails", () => {
  // Shows: docs/email.md#limits: mails of an organization
  it("of an organization are few in an hour, sent again or not, and leave its webhooks their events", async () => {
    await confirmed("e1");
    await hook();
    const limits = { perHour: 100, pending: 100, mailsPerHour: 2, mailsPending: 100 };
    // The confirmation was the first of the two.
    expect(await happened("r1", limits)).toBe(2);
    expect(await happened("r2", limits)).toBe(1);
    expect(await happened("r2", limits)).toBe(0);
    expect(await findWebhook(ledger, organizationId, "e1", "email")).toMatchObject({ dropped_events: "1" });
    expect(await findWebhook(ledger, organizationId, "w1")).toMatchObject({ dropped_events: "0" });
    const mails = (await lease()).filter(({ mail }) => mail !== null);
    await sql`
      update webhook_deliveries set status = 'succeeded', attempted_at = now(), finished_at = now(), held_until = null`.execute(
      ledger,
    );
    const of = (eventType: string) => {
      const found = mails.find((one) => one.eventType === eventType) as LeasedWebhookDelivery;
      return { organizationId, webhookId: "e1", eventId: found.eventId };
    };
    expect(await redeliverWebhook(ledger, of(CONFIRMATION_EVENT), limits)).toBe("confirmation");
    expect(await redeliverWebhook(ledger, of("run.failed"), limits)).toBe("full");
    expect(await redeliverWebhook(ledger, of("run.failed"), { ...limits, mailsPerHour: 3 })).toBe("queued");
  });

  // Shows: docs/email.md#limits: a mail server that is slow or away
  it("of a slow server take no webhook's turn, though they were due before", async () => {
    await confirmed("e1");
    await confirmed("e2");
    for (let index = 0; index < 6; index += 1) {
      await happened(`r${index}`);
    }
    await hook();
    await happened("last");
    const shares = { ...bounds, perOrganization: 6, perHost: 8 };
    // Other organizations' mails have all places of the server.
    await sql`
      with o as (
        insert into webhooks (id, organization_id, url, host, event_types, email, unsubscribe_token)
        select 'o' || n, 'o' || n, 'mailto:o@example.com', 'smtp', '{run.failed}', 'o@example.com', 'o' || n
        from generate_series(1, 8) n returning id, organization_id
      )
      insert into webhook_deliveries (organization_id, webhook_id, event_id, event_type, payload, held_until)
      select organization_id, id, id, 'run.failed', '{}', now() + interval '1 minute' from o`.execute(ledger);
    await sql`update webhook_deliveries set due_at = now() - interval '1 hour' where webhook_id = 'w1'`.execute(
      ledger,
    );
    await sql`update webhook_deliveries set due_at = now() - interval '2 hours' where webhook_id <> 'w1'`.execute(
      ledger,
    );
    expect((await readWebhookBacklog(ledger, shares)).lagMs).toBeLessThan(3_700_000);
    expect(await leaseWebhookDeliveries(ledger, shares)).toMatchObject([{ webhookId: "w1" }]);
  });

  it("that are being sent leave webhooks of the organization their share, and its delay is seen", async () => {
    await confirmed("e1");
    for (let index = 0; index < 5; index += 1) {
      await happened(`r${index}`);
    }
    const shares = { ...bounds, perOrganization: 6 };
    expect(await leaseWebhookDeliveries(ledger, shares)).toHaveLength(6);
    await hook();
    await happened("last");
    await sql`update webhook_deliveries set due_at = now() - interval '1 hour' where webhook_id = 'w1'`.execute(
      ledger,
    );
    expect((await readWebhookBacklog(ledger, shares)).lagMs).toBeGreaterThan(3_500_000);
    expect((await leaseWebhookDeliveries(ledger, shares)).map(({ webhookId }) => webhookId)).toEqual(["w1"]);
  });

  // Shows: docs/email.md#limits: mails that wait
  it("that wait take no event from webhooks, and what webhooks have takes none from mail", async () => {
    await confirmed("e1");
    await hook();
    const limits = { perHour: 3, pending: 3, mailsPerHour: 100, mailsPending: 2 };
    // The confirmation is the first of the two mails that wait.
    expect(await happened("r1", limits)).toBe(2);
    expect(await happened("r2", limits)).toBe(1);
    expect(await happened("r3", limits)).toBe(1);
    expect(await happened("r4", limits)).toBe(0);
    expect(await findWebhook(ledger, organizationId, "w1")).toMatchObject({ dropped_events: "1" });
    expect(await findWebhook(ledger, organizationId, "e1", "email")).toMatchObject({ dropped_events: "3" });
    const [{ event_id: eventId = "" } = {}] = await logOf("w1");
    await sql`update webhook_deliveries set status = 'failed', finished_at = now() where webhook_id = 'w1'`.execute(
      ledger,
    );
    const of = { organizationId, webhookId: "w1", eventId };
    expect(await redeliverWebhook(ledger, of, { ...limits, pending: 1 })).toBe("queued");
    expect(await happened("r5", { ...limits, perHour: 100, mailsPending: 3 })).toBe(2);
  });

  it("that fail by a fault of the platform make no recipient one that fails", async () => {
    await confirmed("e1");
    const [one] = await lease();
    const fail = (isPlatformFault: boolean) =>
      failWebhookDelivery(ledger, one as never, { error: "unreachable", retryMs: 0, isPlatformFault }, -1);
    expect(await fail(true)).toBe(false);
    expect(await findWebhook(ledger, organizationId, "e1", "email")).toMatchObject({ failing_since: null });
    expect((await logOf("e1"))[0]).toMatchObject({ status: "pending", attempts: 1, error: "unreachable" });
  });
});

import {
  confirmEmailRecipient,
  connectLedger,
  createEmailRecipient,
  createWebhook,
  findWebhook,
  type LeaseBounds,
  type Ledger,
  listWebhookDeliveries,
  migrateToLatest,
  recordEvent,
  recordEventFor,
  redeliverWebhook,
} from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { sql } from "kysely";
import { Registry } from "prom-client";
import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { startHttpsServer, type TestServer } from "../../../test/kit/git/https-server.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { startSmtpServer, type TestSmtpServer } from "../../../test/kit/servers/smtp.ts";
import { type DelivererOptions, WebhookDeliverer } from "./deliverer.ts";
import { notificationLedger } from "./ledger.ts";
import { createWebhookMetrics } from "./metrics.ts";
import { receiverClient, sendDelivery } from "./send.ts";
import { mailSender, type SmtpSettings } from "./send-mail.ts";

/** Deliverers over a real PostgreSQL, and a receiver that verifies what it gets with the library of Standard Webhooks. */

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

let postgres: TestPostgres;
let ledger: Ledger;
let mailServer: TestSmtpServer;
let receiver: TestServer;
let statusOf: (path: string) => number | "hang";
/** Ids of events that were verified, by path, in the order of their arrival. */
let received: { path: string; id: string }[] = [];

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  mailServer = await startSmtpServer();
  receiver = await startHttpsServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const headers = request.headers as Record<string, string>;
      new Webhook(SECRET).verify(body, headers);
      const path = request.url ?? "";
      received.push({ path, id: headers["webhook-id"] ?? "" });
      const status = statusOf(path);
      if (status !== "hang") {
        response.writeHead(status).end();
      }
    });
  });
});
afterAll(async () => {
  await receiver?.close();
  await mailServer?.close();
  await ledger?.destroy();
  await postgres?.stop();
});

const open: (() => Promise<void>)[] = [];
beforeEach(async () => {
  received = [];
  mailServer.mails.length = 0;
  mailServer.refuse(undefined);
  statusOf = () => 204;
  await sql`truncate webhooks, webhook_deliveries, webhook_skipped_events, email_confirmations`.execute(
    ledger,
  );
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});

/** A process that delivers, until the end of the test or until it is stopped. */
function deliver(options: Partial<DelivererOptions> = {}, timeoutMs = 5_000): () => Promise<void> {
  const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
  const client = receiverClient({
    allowedHosts: [receiver.host],
    ca: receiver.ca,
    deniedCidrs: [],
    resolve,
    timeoutMs,
  });
  const stop = new AbortController();
  const mails = mailSender(smtp(), { ca: mailServer.ca });
  const running = new WebhookDeliverer({
    ledger: notificationLedger(ledger).deliveries,
    secretsOf: async () => [SECRET],
    send: (leased, secrets, signal) => sendDelivery(leased, secrets, { client, now: new Date(), signal }),
    sendMail: mails.send,
    metrics: createWebhookMetrics(new Registry()),
    random: () => 0,
    log: silentLogger,
    pollMs: 20,
    ...options,
  }).run(stop.signal);
  const close = async () => {
    stop.abort();
    await running;
    await client.close();
    mails.close();
  };
  open.push(close);
  return close;
}

const smtp = (): SmtpSettings => ({
  host: "localhost",
  port: mailServer.port,
  tls: "starttls",
  from: "slipway@example.com",
  publicUrl: "https://api.example.com",
});

async function subscribe(id: string, organization = "acme", host = receiver.host): Promise<void> {
  const settings = { host, description: null, event_types: ["run.failed"], project_ids: null };
  await createWebhook(
    ledger,
    { id, organization_id: organization, url: `${receiver.url}/${id}`, ...settings },
    20,
  );
}
const happened = (key: string, organizationId = "acme") =>
  recordEvent(ledger, {
    organizationId,
    projectId: "p1",
    type: "run.failed",
    key,
    occurredAt: new Date(),
    data: { key },
  });
const deliveriesOf = async (webhookId: string, organizationId = "acme") =>
  (await listWebhookDeliveries(ledger, { organizationId, webhookId, limit: 100, offset: 0 })).deliveries;
/** Time passes: leases expire, and what waits for its next attempt is due. */
const later = () =>
  sql`update webhook_deliveries set due_at = now(), held_until = null where status = 'pending'`.execute(
    ledger,
  );

// Shows: docs/webhooks.md#verification: `webhook-id`
// Shows: docs/webhooks.md#verification: `webhook-timestamp`
it("two processes send each event once, and the receiver verifies it", async () => {
  await subscribe("w1");
  deliver();
  deliver();
  for (let index = 0; index < 30; index += 1) {
    await happened(`e${index}`);
  }
  await eventually("all to arrive", async () =>
    (await deliveriesOf("w1")).every(({ status }) => status === "succeeded"),
  );
  expect(received).toHaveLength(30);
  expect(new Set(received.map(({ id }) => id)).size).toBe(30);
});

// Shows: docs/webhooks.md#delivery: an event | is delivered at least once
it("what a process was sending when it was killed is sent by another", async () => {
  await subscribe("w1");
  await happened("e1");
  // Killed after it has sent, before it could record that: nothing of its ledger is reached any more.
  const { deliveries } = notificationLedger(ledger);
  let taken = 0;
  const dead = {
    ...deliveries,
    lease: async (bounds: LeaseBounds) => {
      const leased = taken === 0 ? await deliveries.lease(bounds) : [];
      taken += leased.length;
      return leased;
    },
    finish: () => new Promise<void>(() => {}),
  };
  const killed = new AbortController();
  void new WebhookDeliverer({
    ledger: dead,
    secretsOf: async () => [SECRET],
    send: async () => ({ outcome: "succeeded", responseCode: 204 }),
    metrics: createWebhookMetrics(new Registry()),
    random: () => 0,
    log: silentLogger,
    pollMs: 20,
  }).run(killed.signal);
  await eventually("it to be sent", () => taken === 1);
  killed.abort();
  deliver();
  expect(received).toEqual([]);
  await later();
  await eventually("it to arrive", async () => (await deliveriesOf("w1"))[0]?.status === "succeeded");
  expect(received).toHaveLength(1);
});

it("a receiver that is back gets what it missed, under the same ids, and again on request", async () => {
  await subscribe("w1");
  statusOf = () => 503;
  deliver();
  await happened("e1");
  await eventually("it to fail", async () => (await deliveriesOf("w1"))[0]?.response_code === 503);
  expect((await findWebhook(ledger, "acme", "w1"))?.failing_since).not.toBeNull();
  statusOf = () => 204;
  await later();
  await eventually("it to arrive", async () => (await deliveriesOf("w1"))[0]?.status === "succeeded");
  expect((await findWebhook(ledger, "acme", "w1"))?.failing_since).toBeNull();
  const eventId = received[0]?.id ?? "";
  await redeliverWebhook(ledger, { organizationId: "acme", webhookId: "w1", eventId });
  await eventually("it to arrive again", async () => received.length === 3);
  expect(new Set(received.map(({ id }) => id))).toEqual(new Set([eventId]));
});

// Shows: docs/webhooks.md#delivery: a receiver that fails
it("a webhook whose receiver answers 410, or fails for days, is disabled", async () => {
  await subscribe("w1");
  await subscribe("w2");
  statusOf = (path) => (path === "/w1" ? 410 : 500);
  await sql`
    update webhooks set failing_since = now() - interval '6 days', last_failed_at = now() where id = 'w2'`.execute(
    ledger,
  );
  await happened("e1");
  deliver();
  await eventually("both to be disabled", async () => {
    const found = await Promise.all(["w1", "w2"].map((id) => findWebhook(ledger, "acme", id)));
    return found[0]?.disabled_reason === "gone" && found[1]?.disabled_reason === "failing";
  });
  expect(await deliveriesOf("w2")).toMatchObject([{ status: "failed" }]);
});

// Shows: docs/webhooks.md#delivery: many webhooks | of an organization
it("receivers that never answer delay no other organization's webhook", async () => {
  statusOf = (path) => (path.startsWith("/slow") ? "hang" : 204);
  for (const index of [1, 2, 3, 4]) {
    await subscribe(`slow${index}`, "attacker", "slow.example:443");
  }
  await subscribe("w1");
  for (let index = 0; index < 20; index += 1) {
    await happened(`e${index}`, "attacker");
  }
  // They would wait for longer than the test does.
  deliver({ bounds: { most: 8 } }, 300_000);
  await eventually("it to be busy", async () => received.length >= 6);
  await happened("e1");
  await eventually(
    "the victim's to succeed",
    async () => (await deliveriesOf("w1"))[0]?.status === "succeeded",
  );
  const { rows } = await sql<{ held: number }>`
    select count(*)::int as held from webhook_deliveries
    where organization_id = 'attacker' and held_until is not null`.execute(ledger);
  expect(rows[0]?.held).toBe(6);
});

it("a webhook without its secret is sent nothing", async () => {
  await subscribe("w1");
  await recordEventFor(
    ledger,
    { id: "w1" },
    {
      organizationId: "acme",
      projectId: null,
      type: "webhook.test",
      key: "t1",
      occurredAt: new Date(),
      data: {},
    },
  );
  deliver({ secretsOf: async () => [] });
  await eventually("it to fail", async () => (await deliveriesOf("w1"))[0]?.error === "secret_missing");
  expect(received).toEqual([]);
});

/** A recipient, confirmed with the code that was in its mail. */
async function recipient(id: string): Promise<void> {
  const settings = { event_types: ["run.failed"], project_ids: null, unsubscribe_token: `${id}-token` };
  await createEmailRecipient(
    ledger,
    { id, organization_id: "acme", email: `${id}@example.com`, ...settings },
    { code: "7KQ2-M9XD", key: id },
    20,
  );
  await eventually("the code to arrive", () => mailServer.mails.length === 1);
  const code = /Code: (\S+)/.exec(mailServer.mails[0]?.raw ?? "")?.[1] ?? "";
  expect(await confirmEmailRecipient(ledger, { organizationId: "acme", id, code })).toMatchObject({ id });
}
const mailsAbout = (eventId: string) =>
  mailServer.mails.filter(({ headers }) => headers["message-id"]?.startsWith(`<${eventId}.`));

// Shows: docs/email.md#mails: an event
it("what happens arrives as a mail, and again when the process was killed before it recorded that, with one Message-ID", async () => {
  const stop = deliver();
  await recipient("e1");
  await stop();
  // Sent by a process that is killed before it can record it.
  await happened("e1");
  const { deliveries } = notificationLedger(ledger);
  let taken = 0;
  const once = async (bounds: LeaseBounds) => {
    const leased = taken === 0 ? await deliveries.lease(bounds) : [];
    taken += leased.length;
    return leased;
  };
  const sender = mailSender(smtp(), { ca: mailServer.ca });
  const killed = new AbortController();
  void new WebhookDeliverer({
    ledger: { ...deliveries, lease: once, finish: () => new Promise<void>(() => {}) },
    secretsOf: async () => [],
    send: () => Promise.reject(new Error("there is no webhook")),
    sendMail: sender.send,
    metrics: createWebhookMetrics(new Registry()),
    random: () => 0,
    log: silentLogger,
    pollMs: 20,
  }).run(killed.signal);
  await eventually("it to be sent", () => mailServer.mails.length === 2);
  killed.abort();
  sender.close();
  deliver();
  await later();
  await eventually("it to be recorded", async () => (await deliveriesOf("e1"))[0]?.status === "succeeded");
  const [event] = await deliveriesOf("e1");
  expect(mailsAbout(event?.event_id ?? "")).toHaveLength(2);
});

// Shows: docs/email.md#mails: a mail that fails
it("a mail waits for a server that is away, and for settings that are missing, by the schedule of webhooks", async () => {
  const stop = deliver();
  await recipient("e1");
  await stop();
  await happened("e1");
  const without = deliver({ sendMail: undefined });
  await eventually(
    "it to be tried",
    async () => (await deliveriesOf("e1"))[0]?.error === "email_not_configured",
  );
  await without();
  mailServer.refuse({ code: 451, at: "recipient" });
  deliver();
  await later();
  await eventually("it to be refused", async () => (await deliveriesOf("e1"))[0]?.response_code === 451);
  mailServer.refuse(undefined);
  await later();
  await eventually("it to arrive", async () => (await deliveriesOf("e1"))[0]?.status === "succeeded");
  expect(await findWebhook(ledger, "acme", "e1", "email")).toMatchObject({ failing_since: null });
});

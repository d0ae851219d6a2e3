import { CONFIRMATION_LIMITS } from "@slipway/ledger";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";

/** Recipients of e-mail over /v1 and a real PostgreSQL. What sends mails is the operator. */

type Caller = Awaited<ReturnType<RealHarness["organization"]>>;

let harness: RealHarness;
let owner: Caller;
let other: Caller;
beforeAll(async () => {
  harness = await startRealHarness();
  owner = await harness.organization();
  other = await harness.organization();
});
afterAll(() => harness?.close());

const RECIPIENTS = "/v1/organization/email-recipients";
const send = (method: "GET" | "POST" | "PATCH" | "DELETE", url: string, payload?: object, by = owner) =>
  harness.app.inject({ method, url, headers: by.headers, ...(payload ? { payload } : {}) });
const body = (email: string) => ({ email, event_types: ["run.failed"] });
const rowOf = (id: string) =>
  harness.ledger.selectFrom("webhooks").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
async function created(email: string, by = owner): Promise<string> {
  const answer = await send("POST", RECIPIENTS, body(email), by);
  expect(answer.statusCode, answer.body).toBe(201);
  return answer.json().data.id;
}
const codeOf = async (id: string) => (await rowOf(id)).confirmation_code ?? "";

describe("a recipient", () => {
  // Shows: docs/email.md#over-v1: `POST /v1/organization/email-recipients` | 201
  // Shows: docs/email.md#over-v1: `GET /v1/organization/email-recipients` | all
  // Shows: docs/email.md#over-v1: `GET /v1/organization/email-recipients/:recipientId` | one
  // Shows: docs/email.md#over-v1: `POST /v1/organization/email-recipients/:recipientId/confirm` | 200
  // Shows: docs/email.md#errors: 404 | `EMAIL_RECIPIENT_NOT_FOUND`
  // Shows: docs/email.md#errors: 409 | `EMAIL_CONFIRMATION_WRONG`
  it("is created, confirms with the code that no answer has, and is of its organization", async () => {
    const id = await created("On-Call@example.com");
    const list = await send("GET", RECIPIENTS);
    expect(list.json().data.recipients).toMatchObject([
      { id, email: "on-call@example.com", confirmed: false },
    ]);
    const log = await send("GET", `${RECIPIENTS}/${id}/deliveries`);
    const code = await codeOf(id);
    expect(code).toMatch(/^[2-9A-Z]{4}-[2-9A-Z]{4}$/);
    const row = await rowOf(id);
    for (const answer of [list, log, await send("GET", `${RECIPIENTS}/${id}`)]) {
      expect(answer.body).not.toContain(code);
      expect(answer.body).not.toContain(row.unsubscribe_token);
    }
    for (const [method, path, payload] of [
      ["GET", "", undefined],
      ["PATCH", "", { enabled: false }],
      ["DELETE", "", undefined],
      ["POST", "/confirm", { code }],
      ["POST", "/send-confirmation", undefined],
      ["POST", "/test", undefined],
      ["GET", "/deliveries", undefined],
    ] as const) {
      const answer = await send(method, RECIPIENTS.concat("/", id, path), payload, other);
      expect(statusAndCode(answer), path).toEqual([404, "EMAIL_RECIPIENT_NOT_FOUND"]);
    }
    const hook = await send("GET", `/v1/organization/webhooks/${id}`);
    expect(statusAndCode(hook)).toEqual([404, "WEBHOOK_NOT_FOUND"]);
    const wrong = await send("POST", `${RECIPIENTS}/${id}/confirm`, { code: "2222-2222" });
    expect(statusAndCode(wrong)).toEqual([409, "EMAIL_CONFIRMATION_WRONG"]);
    const confirmed = await send("POST", `${RECIPIENTS}/${id}/confirm`, { code });
    expect(confirmed.json().data).toMatchObject({ id, confirmed: true, confirmed_at: expect.any(String) });
  });

  // Shows: docs/email.md#errors: 400
  it.each([
    "a@example.com\r\nBcc: b@example.com",
    "a@example.com, b@example.com",
    "A <a@example.com>",
    '"a b"@example.com',
    "a@localhost",
    "a@[127.0.0.1]",
    "ä@example.com",
    `${"a".repeat(250)}@example.com`,
  ])("is not created for %j", async (email) => {
    expect((await send("POST", RECIPIENTS, body(email))).statusCode).toBe(400);
  });

  // Shows: docs/email.md#over-v1: `PATCH /v1/organization/email-recipients/:recipientId` | `event_types`
  // Shows: docs/email.md#over-v1: `DELETE /v1/organization/email-recipients/:recipientId` | deleted
  // Shows: docs/email.md#over-v1: `POST /v1/organization/email-recipients/:recipientId/send-confirmation` | 202
  // Shows: docs/email.md#errors: 409 | `EMAIL_RECIPIENT_DISABLED`
  // Shows: docs/email.md#errors: 409 | `EMAIL_RECIPIENT_CONFIRMED`
  // Shows: docs/email.md#errors: 409 | `EMAIL_RECIPIENT_UNCONFIRMED`
  // Shows: docs/email.md#errors: 409 | `EMAIL_CONFIRMATION_EXPIRED`
  // Shows: docs/email.md#errors: 409 | `EMAIL_RECIPIENT_EXISTS`
  it("is changed, is sent another code, and is deleted", async () => {
    const id = await created("change@example.com");
    const at = (path: string, payload?: object) => send("POST", `${RECIPIENTS}/${id}${path}`, payload);
    expect(statusAndCode(await send("POST", RECIPIENTS, body("change@example.com")))).toEqual([
      409,
      "EMAIL_RECIPIENT_EXISTS",
    ]);
    expect(statusAndCode(await at("/test"))).toEqual([409, "EMAIL_RECIPIENT_UNCONFIRMED"]);
    const first = await codeOf(id);
    expect((await at("/send-confirmation")).statusCode).toBe(202);
    expect(await codeOf(id)).not.toBe(first);
    await sql`update webhooks set confirmation_expires_at = now() where id = ${id}`.execute(harness.ledger);
    const late = await at("/confirm", { code: await codeOf(id) });
    expect(statusAndCode(late)).toEqual([409, "EMAIL_CONFIRMATION_EXPIRED"]);
    expect(statusAndCode(await at("/send-confirmation"))).toEqual([409, "EMAIL_CONFIRMATION_LIMIT_REACHED"]);
    await sql`update email_confirmations set created_at = now() - interval '2 days'`.execute(harness.ledger);
    await at("/send-confirmation");
    expect((await at("/confirm", { code: await codeOf(id) })).statusCode).toBe(200);
    expect(statusAndCode(await at("/send-confirmation"))).toEqual([409, "EMAIL_RECIPIENT_CONFIRMED"]);
    const change = { event_types: ["build.failed"], project_ids: ["pshop"], enabled: false };
    expect((await send("PATCH", `${RECIPIENTS}/${id}`, change)).json().data).toMatchObject({
      ...change,
      disabled_reason: "requested",
      email: "change@example.com",
    });
    expect(statusAndCode(await at("/test"))).toEqual([409, "EMAIL_RECIPIENT_DISABLED"]);
    expect((await send("DELETE", `${RECIPIENTS}/${id}`)).statusCode).toBe(200);
    expect((await send("GET", `${RECIPIENTS}/${id}`)).statusCode).toBe(404);
  });

  // Shows: docs/email.md#errors: 409 | `EMAIL_CONFIRMATION_LIMIT_REACHED`
  it("is not created beyond the bound of confirmation mails", async () => {
    const crowded = await harness.organization();
    for (let index = 0; index < CONFIRMATION_LIMITS.perOrganizationHour; index += 1) {
      await created(`m${index}@crowded.example`, crowded);
    }
    const refused = await send("POST", RECIPIENTS, body("one@crowded.example"), crowded);
    expect(statusAndCode(refused)).toEqual([409, "EMAIL_CONFIRMATION_LIMIT_REACHED"]);
    expect((await send("GET", RECIPIENTS, undefined, crowded)).json().data.recipients).toHaveLength(10);
  });

  // Shows: docs/email.md#limits: recipients of an organization | 20
  // Shows: docs/email.md#errors: 409 | `EMAIL_RECIPIENT_LIMIT_REACHED`
  it("is one of twenty at most", async () => {
    const full = await harness.organization();
    await sql`
      insert into webhooks (id, organization_id, url, host, event_types, email)
      select ${full.id} || n, ${full.id}, 'mailto:' || n, 'smtp', '{}', n || '@full.example'
      from generate_series(1, 20) n`.execute(harness.ledger);
    const refused = await send("POST", RECIPIENTS, body("more@full.example"), full);
    expect(statusAndCode(refused)).toEqual([409, "EMAIL_RECIPIENT_LIMIT_REACHED"]);
  });
});

describe("a mail", () => {
  // Shows: docs/email.md#over-v1: `POST /v1/organization/email-recipients/:recipientId/test` | 202
  // Shows: docs/email.md#over-v1: `GET /v1/organization/email-recipients/:recipientId/deliveries` | a page
  // Shows: docs/email.md#over-v1: `POST /v1/organization/email-recipients/:recipientId/deliveries/:deliveryId/redeliver` | 202
  // Shows: docs/email.md#errors: 409 | `EMAIL_CONFIRMATION_NOT_REPEATABLE`
  // Shows: docs/email.md#errors: 404 | `EMAIL_DELIVERY_NOT_FOUND`
  it("is requested for a test, is listed, and is sent again unless it has a code", async () => {
    const id = await created("log@example.com");
    await send("POST", `${RECIPIENTS}/${id}/confirm`, { code: await codeOf(id) });
    const tested = await send("POST", `${RECIPIENTS}/${id}/test`);
    expect(tested.statusCode, tested.body).toBe(202);
    const delivery = tested.json().data.id;
    await sql`
      update webhook_deliveries set status = 'succeeded', finished_at = now() where webhook_id = ${id}`.execute(
      harness.ledger,
    );
    const log = (await send("GET", `${RECIPIENTS}/${id}/deliveries`)).json().data.deliveries;
    expect(log).toMatchObject([
      { id: delivery, event_type: "email.test" },
      { event_type: "email.confirmation" },
    ]);
    const again = (which: string) => send("POST", `${RECIPIENTS}/${id}/deliveries/${which}/redeliver`);
    expect(statusAndCode(await again(log[1].id))).toEqual([409, "EMAIL_CONFIRMATION_NOT_REPEATABLE"]);
    expect((await again(delivery)).statusCode).toBe(202);
    expect(statusAndCode(await again("evt_none"))).toEqual([404, "EMAIL_DELIVERY_NOT_FOUND"]);
  });
});

describe("the link in a mail", () => {
  // Shows: docs/email.md#mails: the link
  // Shows: docs/email.md#over-v1: `GET /v1/email/unsubscribe/:token` | a page
  // Shows: docs/email.md#over-v1: `POST /v1/email/unsubscribe/:token` | 200
  // Shows: docs/email.md#errors: 404 | `EMAIL_TOKEN_UNKNOWN`
  it("needs no credential, changes nothing when it is read, and ends mail when it is clicked", async () => {
    const id = await created("leave@example.com");
    const url = `/v1/email/unsubscribe/${(await rowOf(id)).unsubscribe_token}`;
    const page = await harness.app.inject({ url });
    expect([page.statusCode, page.headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
    expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
    expect(await rowOf(id)).toMatchObject({ disabled_at: null });
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const clicked = await harness.app.inject({
      method: "POST",
      url,
      headers,
      payload: "List-Unsubscribe=One-Click",
    });
    expect(clicked.statusCode, clicked.body).toBe(200);
    // A code may be requested for it again: no page says that there is no mail at all.
    expect(clicked.body).toContain("Notifications from this organization to you have ended.");
    expect(await rowOf(id)).toMatchObject({ disabled_reason: "unsubscribed" });
    const shown = (await send("GET", `${RECIPIENTS}/${id}`)).json().data;
    expect(shown).toMatchObject({ enabled: false, confirmed: false, disabled_reason: "unsubscribed" });
    for (const token of ["x", "t".repeat(32)]) {
      const unknown = await harness.app.inject({ url: `/v1/email/unsubscribe/${token}` });
      expect(statusAndCode(unknown)).toEqual([404, "EMAIL_TOKEN_UNKNOWN"]);
    }
  });
});

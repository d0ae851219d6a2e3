import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { organizationNamespace, webhookSecretName } from "@slipway/crds";
import { EVENT_LIMITS, failWebhookDelivery, leaseWebhookDeliveries } from "@slipway/ledger";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";

/** Webhooks over a real kube-apiserver with the API server's own roles, and a real PostgreSQL. */

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

const WEBHOOKS = "/v1/organization/webhooks";
const send = (method: "GET" | "POST" | "PATCH" | "DELETE", url: string, payload?: object, by = owner) =>
  harness.app.inject({ method, url, headers: by.headers, ...(payload ? { payload } : {}) });
const body = { url: "https://hooks.example.com/x?y=1", event_types: ["deployment.failed"] };
async function created(): Promise<{ id: string; secret: string }> {
  const answer = await send("POST", WEBHOOKS, body);
  expect(answer.statusCode, answer.body).toBe(201);
  return answer.json().data;
}
const secretOf = async (id: string) => {
  const ref = { namespace: organizationNamespace(owner.id), name: webhookSecretName(id) };
  const secret = await harness.admin.getOrUndefined<KubernetesObject & { data?: Record<string, string> }>(
    resources.secrets,
    ref,
  );
  const decoded = Object.entries(secret?.data ?? {}).map(([key, value]) => [key, atob(value)]);
  return secret && Object.fromEntries(decoded);
};

describe("a webhook", () => {
  // Shows: docs/webhooks.md#over-v1: `POST /v1/organization/webhooks` | 201
  // Shows: docs/webhooks.md#over-v1: `GET /v1/organization/webhooks` | all
  // Shows: docs/webhooks.md#over-v1: `GET /v1/organization/webhooks/:webhookId` | one
  // Shows: docs/webhooks.md#errors: 404 | `WEBHOOK_NOT_FOUND`
  it("is created with its secret in a Secret alone, and is of its organization", async () => {
    const { id, secret } = await created();
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(await secretOf(id)).toEqual({ current: secret });
    const read = await send("GET", `${WEBHOOKS}/${id}`);
    expect(read.json().data).toMatchObject({ id, ...body, enabled: true, dropped_events: 0 });
    const list = await send("GET", WEBHOOKS);
    expect(list.json().data.webhooks).toHaveLength(1);
    expect(read.body + list.body).not.toContain("whsec_");
    const rows = await harness.ledger.selectFrom("webhooks").selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(secret.slice(6));
    for (const [method, path] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/test"],
      ["POST", "/rotate-secret"],
      ["GET", "/deliveries"],
    ] as const) {
      const answer = await send(
        method,
        WEBHOOKS.concat("/", id, path),
        method === "PATCH" ? { enabled: false } : undefined,
        other,
      );
      expect(statusAndCode(answer), path).toEqual([404, "WEBHOOK_NOT_FOUND"]);
    }
    expect((await send("GET", WEBHOOKS, undefined, other)).json().data.webhooks).toEqual([]);
  });

  // Shows: docs/webhooks.md#errors: 400 | `WEBHOOK_URL_INVALID`
  it.each([
    "http://hooks.example.com",
    "https://u:p@hooks.example.com",
    "https://h.example/#x",
    "hooks",
    "https:h",
  ])("is not created for %s", async (url) => {
    expect(statusAndCode(await send("POST", WEBHOOKS, { ...body, url }))).toEqual([
      400,
      "WEBHOOK_URL_INVALID",
    ]);
  });

  // Shows: docs/webhooks.md#over-v1: `PATCH /v1/organization/webhooks/:webhookId` | `url`
  // Shows: docs/webhooks.md#over-v1: `DELETE /v1/organization/webhooks/:webhookId` | deleted
  it("is changed, and is deleted with its Secret", async () => {
    const { id } = await created();
    const changed = {
      description: "Pages",
      event_types: ["run.failed"],
      project_ids: ["pshop"],
      enabled: false,
    };
    expect((await send("PATCH", `${WEBHOOKS}/${id}`, changed)).json().data).toMatchObject({
      ...changed,
      disabled_reason: "requested",
    });
    const back = await send("PATCH", `${WEBHOOKS}/${id}`, {
      description: null,
      project_ids: null,
      enabled: true,
    });
    expect(back.json().data).toMatchObject({ enabled: true, event_types: ["run.failed"] });
    expect(back.json().data).not.toHaveProperty("project_ids");
    expect((await send("DELETE", `${WEBHOOKS}/${id}`)).statusCode).toBe(200);
    expect(await secretOf(id)).toBeUndefined();
  });

  // Shows: docs/webhooks.md#over-v1: `POST /v1/organization/webhooks/:webhookId/rotate-secret` | the new
  it("has another secret once it is rotated, and the one before for a day", async () => {
    const { id, secret } = await created();
    const rotated = await send("POST", `${WEBHOOKS}/${id}/rotate-secret`);
    const { secret: next } = rotated.json().data;
    expect(next).not.toBe(secret);
    const kept = await secretOf(id);
    expect(kept).toMatchObject({ current: next, previous: secret });
    expect(Date.parse(kept?.previousUntil ?? "") - Date.now()).toBeGreaterThan(86_000_000);
  });

  // Shows: docs/webhooks.md#limits: webhooks of an organization | 20
  // Shows: docs/webhooks.md#errors: 409 | `WEBHOOK_LIMIT_REACHED`
  it("is one of twenty at most", async () => {
    const crowded = await harness.organization();
    for (let index = 0; index < 20; index += 1) {
      expect((await send("POST", WEBHOOKS, body, crowded)).statusCode).toBe(201);
    }
    const refused = await send("POST", WEBHOOKS, body, crowded);
    expect(statusAndCode(refused)).toEqual([409, "WEBHOOK_LIMIT_REACHED"]);
    expect(refused.json().limit).toBe(20);
  });
});

describe("a delivery", () => {
  // Shows: docs/webhooks.md#over-v1: `POST /v1/organization/webhooks/:webhookId/test` | 202
  // Shows: docs/webhooks.md#over-v1: `GET /v1/organization/webhooks/:webhookId/deliveries` | a page
  // Shows: docs/webhooks.md#over-v1: `POST /v1/organization/webhooks/:webhookId/deliveries/:deliveryId/redeliver` | 202
  // Shows: docs/webhooks.md#errors: 409 | `WEBHOOK_DISABLED`
  // Shows: docs/webhooks.md#errors: 409 | `WEBHOOK_DELIVERY_PENDING`
  // Shows: docs/webhooks.md#errors: 404 | `WEBHOOK_DELIVERY_NOT_FOUND`
  it("is requested for a test, is listed, and is sent again once it has ended", async () => {
    const { id } = await created();
    const tested = await send("POST", `${WEBHOOKS}/${id}/test`);
    expect(tested.statusCode, tested.body).toBe(202);
    const delivery = tested.json().data.id;
    const again = `${WEBHOOKS}/${id}/deliveries/${delivery}/redeliver`;
    expect(statusAndCode(await send("POST", again))).toEqual([409, "WEBHOOK_DELIVERY_PENDING"]);
    const bounds = { most: 100, perOrganization: 9, perWebhook: 9, perHost: 99, leaseMs: 60_000 };
    const leased = await leaseWebhookDeliveries(harness.ledger, bounds);
    const one = leased.find(({ eventId }) => eventId === delivery);
    await failWebhookDelivery(harness.ledger, one as never, { responseCode: 500, responseBody: "no" }, 1e9);
    const list = await send("GET", `${WEBHOOKS}/${id}/deliveries?status=failed`);
    expect(list.json().data).toMatchObject({
      deliveries: [
        { id: delivery, event_type: "webhook.test", attempts: 1, response_code: 500, response_body: "no" },
      ],
      pagination: { page: 1, total: 1, pages: 1 },
    });
    const unknown = `${WEBHOOKS}/${id}/deliveries/evt_none/redeliver`;
    expect(statusAndCode(await send("POST", unknown))).toEqual([404, "WEBHOOK_DELIVERY_NOT_FOUND"]);
    expect((await send("POST", again)).statusCode).toBe(202);
    await send("PATCH", `${WEBHOOKS}/${id}`, { enabled: false });
    expect(statusAndCode(await send("POST", again))).toEqual([409, "WEBHOOK_DISABLED"]);
    expect(statusAndCode(await send("POST", `${WEBHOOKS}/${id}/test`))).toEqual([409, "WEBHOOK_DISABLED"]);
  });

  // Shows: docs/webhooks.md#errors: 409 | `WEBHOOK_DELIVERIES_FULL`
  it("is not begun for a test beyond the organization's bound", async () => {
    const { id } = await created();
    await sql`
      insert into webhook_deliveries (organization_id, webhook_id, event_id, event_type, payload, status)
      select ${owner.id}, ${id}, 'evt_' || n, 'run.failed', '{}', 'failed'
      from generate_series(1, ${EVENT_LIMITS.perHour}::int) n`.execute(harness.ledger);
    const refused = await send("POST", `${WEBHOOKS}/${id}/test`);
    expect(statusAndCode(refused)).toEqual([409, "WEBHOOK_DELIVERIES_FULL"]);
    expect((await send("GET", `${WEBHOOKS}/${id}`)).json().data.dropped_events).toBe(1);
  });
});

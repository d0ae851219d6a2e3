import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { describe, expect, it } from "vitest";
import { isSignedByStripe, signedHeaders, verifiedStandardId } from "./webhook-signatures.ts";

const secret = (text: string) => `whsec_${Buffer.from(text.padEnd(32, ".")).toString("base64")}`;
const payload = JSON.stringify({ type: "deployment.failed", data: { message: "ü 🙂" } });
const body = Buffer.from(payload);
const now = new Date("2026-11-30T12:00:00Z");
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1_000);

describe("a webhook that is sent", () => {
  // Shows: docs/webhooks.md#verification: signature
  it("is verified with the library of Standard Webhooks, also while a secret is replaced", () => {
    const headers = signedHeaders({ id: "evt_1", at: new Date(), payload }, [secret("new"), secret("old")]);
    for (const known of ["new", "old"]) {
      expect(new Webhook(secret(known)).verify(payload, headers)).toEqual(JSON.parse(payload));
    }
    expect(() => new Webhook(secret("other")).verify(payload, headers)).toThrow();
    expect(() => new Webhook(secret("new")).verify(`${payload} `, headers)).toThrow();
  });

  it("is refused by a receiver when it was recorded and is sent to it much later", () => {
    const at = new Date(Date.now() - 600_000);
    const headers = signedHeaders({ id: "evt_1", at, payload }, [secret("new")]);
    expect(() => new Webhook(secret("new")).verify(payload, headers)).toThrow();
  });
});

describe("a webhook that is received, by Standard Webhooks", () => {
  const signed = (at = now, known = secret("one")) => ({
    "webhook-id": "evt_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
    "webhook-signature": new Webhook(known).sign("evt_1", at, payload),
  });
  const verified = (headers: Record<string, string>, secrets = [secret("one")], bytes = body) =>
    verifiedStandardId({ headers, body: bytes }, secrets, now);

  it("has the id that its library signed", () => {
    expect(verified(signed())).toBe("evt_1");
    expect(verified(signed(now, secret("old")), [secret("one"), secret("old")])).toBe("evt_1");
    expect(
      verified({ ...signed(), "webhook-signature": `v1a,x v1,AAAA ${signed()["webhook-signature"]}` }),
    ).toBe("evt_1");
  });

  it.each([
    ["another secret", signed(now, secret("two"))],
    ["an old time", signed(ago(301))],
    ["a time ahead", signed(ago(-301))],
    ["another id", { ...signed(), "webhook-id": "evt_2" }],
    ["another time", { ...signed(), "webhook-timestamp": String(now.getTime() / 1_000 + 1) }],
    ["no time", { ...signed(), "webhook-timestamp": "1e3" }],
    ["no signature", { ...signed(), "webhook-signature": "" }],
    ["an empty signature", { ...signed(), "webhook-signature": "v1," }],
    [
      "another version",
      { ...signed(), "webhook-signature": signed()["webhook-signature"].replace("v1,", "v2,") },
    ],
  ])("is refused with %s", (_, headers) => {
    expect(verified(headers)).toBeUndefined();
  });

  it("is refused with other bytes, and without secrets", () => {
    expect(verified(signed(), [secret("one")], Buffer.from(`${payload} `))).toBeUndefined();
    expect(verified(signed(), [])).toBeUndefined();
  });
});

describe("a webhook that is received from Stripe", () => {
  const { webhooks } = new Stripe("sk_test_none");
  const header = (at = now, known = "whsec_one") =>
    webhooks.generateTestHeaderString({
      payload,
      secret: known,
      timestamp: Math.floor(at.getTime() / 1_000),
    });
  const isSigned = (value: string, secrets = ["whsec_one"], bytes = body) =>
    isSignedByStripe({ headers: { "stripe-signature": value }, body: bytes }, secrets, now);

  // Shows: docs/invoices.md#payment-webhooks: `POST /v1/payment-webhooks/stripe`
  it("is one that Stripe's own library signed", () => {
    expect(isSigned(header())).toBe(true);
    expect(isSigned(header(ago(299)))).toBe(true);
    expect(isSigned(header(now, "whsec_old"), ["whsec_one", "whsec_old"])).toBe(true);
    expect(isSigned(`${header(now, "whsec_other")},${header().replace(/^t=[0-9]+,/, "")}`)).toBe(true);
  });

  it.each([
    ["another secret", header(now, "whsec_two")],
    ["an old time", header(ago(301))],
    ["a time ahead", header(ago(-301))],
    ["another time", header().replace(/^t=[0-9]+/, `t=${now.getTime() / 1_000 + 1}`)],
    ["two times", `t=1,${header()}`],
    ["another scheme", header().replace("v1=", "v0=")],
    ["no signature", `t=${now.getTime() / 1_000}`],
    ["nothing", ""],
  ])("is refused with %s", (_, value) => {
    expect(isSigned(value)).toBe(false);
  });

  it("is refused with other bytes, and without secrets", () => {
    expect(isSigned(header(), ["whsec_one"], Buffer.from(`${payload} `))).toBe(false);
    expect(isSigned(header(), [])).toBe(false);
  });
});

import { Webhook } from "standardwebhooks";
import { expect, it } from "vitest";
import { RETRY_PAUSES_MS, retryPauseMs } from "./schedule.ts";
import { signedHeaders } from "./signature.ts";

const secret = (text: string) => `whsec_${Buffer.from(text.padEnd(32, ".")).toString("base64")}`;
const payload = JSON.stringify({ type: "deployment.failed", data: { message: "ü 🙂" } });

// Shows: docs/webhooks.md#verification: signature
it("a receiver verifies deliveries with the library of Standard Webhooks, also while a secret is replaced", () => {
  const headers = signedHeaders({ id: "evt_1", at: new Date(), payload }, [secret("new"), secret("old")]);
  for (const known of ["new", "old"]) {
    expect(new Webhook(secret(known)).verify(payload, headers)).toEqual(JSON.parse(payload));
  }
  expect(() => new Webhook(secret("other")).verify(payload, headers)).toThrow();
  expect(() => new Webhook(secret("new")).verify(`${payload} `, headers)).toThrow();
});

it("a receiver refuses a delivery that was recorded and is sent to it much later", () => {
  const at = new Date(Date.now() - 600_000);
  const headers = signedHeaders({ id: "evt_1", at, payload }, [secret("new")]);
  expect(() => new Webhook(secret("new")).verify(payload, headers)).toThrow();
});

// Shows: docs/webhooks.md#delivery: an attempt that fails
it("a delivery that fails is tried for three days, at times that differ", () => {
  const pauses = RETRY_PAUSES_MS.map((_, index) => retryPauseMs(index + 1, 0) ?? 0);
  expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
  expect(pauses.reduce((sum, pause) => sum + pause, 0)).toBeGreaterThan(3 * 86_400_000);
  expect(retryPauseMs(1, 0.5)).toBe(5_500);
  expect(retryPauseMs(RETRY_PAUSES_MS.length + 1, 0)).toBeUndefined();
});

import { readFileSync } from "node:fs";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createWebhookMetrics } from "./metrics.ts";

// Shows: docs/email.md#for-operators-of-the-platform: A recipient that the mail server refuses for good
test("what a recipient is the cause of is counted apart from what the mail server is, and raises no alert", async () => {
  const registry = new Registry();
  createWebhookMetrics(registry);
  const found = await registry.getSingleMetric("slipway_email_attempts_total")?.get();
  const outcomes = found?.values.map(({ labels, value }) => [String(labels.outcome), value] as const) ?? [];
  expect(new Map(outcomes)).toEqual(
    new Map([
      ...[["succeeded", 0] as const, ["refused", 0] as const, ["unreachable", 0] as const],
      ...[["recipient_refused", 0] as const, ["withheld", 0] as const],
    ]),
  );
  const alerts = new URL("../../../charts/slipway/files/alerts/email.yaml", import.meta.url);
  const [, failing = ""] = /outcome=~"([^"]+)"/.exec(readFileSync(alerts, "utf8")) ?? [];
  // Prometheus matches the whole value.
  const isFailing = new RegExp(`^(?:${failing})$`);
  expect(outcomes.map(([outcome]) => outcome).filter((one) => isFailing.test(one))).toEqual([
    "refused",
    "unreachable",
  ]);
});

import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { RequestScalingMetrics } from "./metrics.ts";
import { RequestScaler } from "./request-scaling.ts";

test("failures are logged when they are of other nodes than in the last round", async () => {
  const clock = new FakeClock();
  const logged: unknown[] = [];
  let failing: string[] | Error = [];
  const read = async () => {
    if (failing instanceof Error) {
      throw failing;
    }
    const failures = failing.map((node) => ({ node, error: new Error(`of ${node}`) }));
    return { at: clock.monotonic(), readings: [], complete: failures.length === 0, failures };
  };
  const target = { uid: "u1", key: "acme/pshop", perInstance: 10, min: 1, max: 5 };
  const options = {
    targets: () => [{ ...target, project: { namespace: "slipway-org-acme", name: "pshop" } }],
    read,
    onChange: () => undefined,
    intervalMs: 10_000,
    metrics: new RequestScalingMetrics(new Registry()),
    clock,
    log: { warn: (fields: unknown) => void logged.push((fields as { nodes: string[] }).nodes) },
  };
  const scaler = new RequestScaler();
  const rounds = [
    ["a"],
    ["a"],
    ["b", "a"],
    ["a", "b"],
    ["b"],
    [],
    ["b"],
    new Error("away"),
    new Error("away"),
  ];
  for (const round of rounds) {
    failing = round;
    await scaler.round(options, new AbortController().signal);
  }
  expect(logged).toEqual([["a"], ["a", "b"], ["b"], ["b"], []]);
});

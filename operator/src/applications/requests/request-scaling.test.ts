import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { RequestScalingMetrics } from "./metrics.ts";
import { RequestScaler } from "./request-scaling.ts";

// Shows: docs/applications.md#scaling-by-requests: nothing is read as long as no project is scaled by them; after that one request for each
test("counts are read once for all who need them, and by none for whom there is no need", async () => {
  const clock = new FakeClock();
  const rounds: number[] = [];
  let isWanted = false;
  let reads = 0;
  const options = {
    targets: () => [],
    read: async () => {
      reads += 1;
      return { at: clock.monotonic(), readings: [], complete: true };
    },
    observer: { isWanted: () => isWanted, add: ({ at }: { at: number }) => void rounds.push(at) },
    onChange: () => undefined,
    intervalMs: 10_000,
    metrics: new RequestScalingMetrics(new Registry()),
    clock,
    log: { warn: () => undefined },
  };
  const scaler = new RequestScaler();
  const { signal } = new AbortController();
  await scaler.round(options, signal);
  expect(reads).toBe(0);
  isWanted = true;
  await scaler.round(options, signal);
  expect([reads, rounds.length]).toEqual([1, 1]);
});

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

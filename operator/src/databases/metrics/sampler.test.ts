import type { SnapshotResource } from "@slipway/crds";
import type { MetricSampleRow, StoredMetricSamples } from "@slipway/ledger";
import { silentLogger, sleep } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import type { Facts } from "./facts.ts";
import { DatabaseSampler } from "./sampler.ts";
import type { Reading } from "./snapshot.ts";
import type { Target } from "./targets.ts";

let clock: FakeClock;
let rows: MetricSampleRow[];
let results: string[];
let targets: Target[];
let resource: SnapshotResource;
let read: (target: Target) => Promise<Reading>;
let stored: () => Promise<StoredMetricSamples[]>;
let stop: AbortController;

const KNOWN = {
  cpu_usage_cores: 0.5,
  memory_usage_bytes: 1_000,
  storage_used_bytes: 10,
  storage_capacity_bytes: 100,
};

const target = (instance = "pshop-0", change: Partial<Target> = {}): Target => ({
  organizationId: "acme",
  projectId: "pshop",
  projectUid: "u1",
  instance,
  type: "postgresql",
  namespace: "slipway-org-acme",
  podUid: `uid-${instance}`,
  ip: "10.0.0.1",
  node: "n1",
  container: "c1",
  serverName: instance,
  expected: { replicas: 0, profile: "key_value", persistent: true },
  ...change,
});

/** 10 transactions in a second, since the clock began. */
const reading = (facts: Facts = {}, incomplete = false): Reading => ({
  raw: {
    process: "c1",
    clockMs: clock.now().getTime(),
    facts: { commits: clock.monotonic() / 100, rollbacks: 0, ...facts },
  },
  incomplete,
});

beforeEach(() => {
  clock = new FakeClock();
  [rows, results, targets, resource] = [[], [], [target()], KNOWN];
  read = async () => reading();
  stored = async () => [];
  stop = new AbortController();
});
afterEach(() => stop.abort());

function start(): Promise<void> {
  const sampler = new DatabaseSampler({
    targets: () => targets,
    engines: { postgresql: (given) => read(given) },
    resources: { of: async () => resource },
    outbox: { put: (row) => rows.push(row), close: async () => undefined },
    stored: () => stored(),
    clock,
    log: silentLogger,
    onResult: (type, result) => results.push(`${type} ${result}`),
  });
  return sampler.run(stop.signal);
}

const shown = () =>
  rows.map(({ instance, snapshot: { type, observed_at, availability, native } }) => [
    instance,
    observed_at.slice(14, 19),
    availability,
    type === "postgresql" ? native.activity.transactions_per_second : undefined,
  ]);

test("every minute each instance is sampled, with rates from the second time on", async () => {
  targets = [target(), target("pshop-1")];
  const running = start();
  await clock.advance(125_000);
  stop.abort();
  await running;
  expect(shown()).toEqual([
    ["pshop-0", "00:00", "available", null],
    ["pshop-1", "00:00", "available", null],
    ["pshop-0", "01:00", "available", 10],
    ["pshop-1", "01:00", "available", 10],
    ["pshop-0", "02:00", "available", 10],
    ["pshop-1", "02:00", "available", 10],
  ]);
  expect(rows[0]?.snapshot.resource).toEqual(KNOWN);
});

test("a sample is from when its reading began: what happened meanwhile may be missing from it", async () => {
  read = async () => {
    const early = reading();
    await sleep(clock, 2_000, stop.signal);
    return early;
  };
  const running = start();
  await clock.advance(3_000);
  stop.abort();
  await running;
  expect(shown()).toEqual([["pshop-0", "00:00", "available", null]]);
});

test("sampling continues from what is kept, of the same project alone", async () => {
  const kept = reading();
  await clock.advance(60_000);
  targets = [target(), target("pshop-1"), target("pshop-2")];
  stored = async () => {
    const of = (instance: string, projectUid: string, raw: unknown) =>
      ({ ...target(instance), projectUid, newest: { raw } }) as unknown as StoredMetricSamples;
    return [of("pshop-0", "u1", kept.raw), of("pshop-1", "u0", kept.raw), of("pshop-2", "u1", { facts: 1 })];
  };
  void start();
  await clock.advance(1_000);
  expect(shown().map(([instance, , , rate]) => [instance, rate])).toEqual([
    ["pshop-0", 10],
    ["pshop-1", null],
    ["pshop-2", null],
  ]);
});

test("without what is kept the first sample has no rates", async () => {
  stored = async () => {
    throw new Error("away");
  };
  void start();
  await clock.advance(61_000);
  expect(shown().map(([, , , rate]) => rate)).toEqual([null, 10]);
});

test("a failure keeps nothing, and the next rate spans it", async () => {
  void start();
  await clock.advance(1_000);
  read = async () => {
    throw new Error("refused");
  };
  await clock.advance(60_000);
  read = async () => reading();
  await clock.advance(60_000);
  expect(shown()).toEqual([
    ["pshop-0", "00:00", "available", null],
    ["pshop-0", "02:00", "available", 10],
  ]);
  expect(results).toEqual(["postgresql success", "postgresql error", "postgresql success"]);
});

test("one that hangs is abandoned after ten seconds, and delays no other", async () => {
  targets = [target(), target("pshop-1")];
  read = ({ instance }) =>
    instance === "pshop-0" ? new Promise(() => undefined) : Promise.resolve(reading());
  void start();
  await clock.advance(1_000);
  expect(shown()).toEqual([["pshop-1", "00:00", "available", null]]);
  await clock.advance(10_000);
  expect(results).toEqual(["postgresql success", "postgresql error"]);
});

describe("a sample is partial", () => {
  const first = async () => {
    void start();
    await clock.advance(1_000);
    return rows[0]?.snapshot.availability;
  };

  test("when a part of the engine could not be read", async () => {
    read = async () => reading({}, true);
    expect(await first()).toBe("partial");
  });

  test("when nothing is known of its resources", async () => {
    resource = {
      cpu_usage_cores: null,
      memory_usage_bytes: null,
      storage_used_bytes: null,
      storage_capacity_bytes: null,
    };
    expect(await first()).toBe("partial");
  });

  test("but not when one of them has no source", async () => {
    resource = { ...KNOWN, storage_used_bytes: null };
    expect(await first()).toBe("available");
  });
});

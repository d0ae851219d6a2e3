import type { KubeletAddress, Reading } from "@slipway/controller-runtime";
import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { KubeletSamples } from "./run-samples.ts";

let clock: FakeClock;
let samples: KubeletSamples;
let stop: AbortController;
let running: Promise<void>;
/** Requests so far: host and seconds since the start. */
let asked: [string, number][];
let closed: string[];
let results: string[];
/** What a kubelet answers; it is dead when this throws, and silent when it never settles. */
let answer: (address: KubeletAddress) => Promise<Map<string, Reading>>;
let addresses: Map<string, string>;

beforeEach(() => {
  clock = new FakeClock();
  [asked, closed, results] = [[], [], []];
  addresses = new Map();
  answer = async () => new Map();
  stop = new AbortController();
  samples = new KubeletSamples({
    kubelets: {
      read: (address) => {
        asked.push([address.host, clock.monotonic() / 1_000]);
        return answer(address);
      },
      close: async ({ host }) => void closed.push(host),
    },
    addressOf: (name) => ({ host: addresses.get(name) ?? name, port: 10_250 }),
    clock,
    log: silentLogger,
    onRead: (result) => results.push(result),
  });
  running = samples.run(stop.signal);
});
afterEach(async () => {
  stop.abort();
  await running;
});

const follow = (key: string, nodeName = "n1") =>
  samples.follow({
    key,
    nodeName,
    namespace: "a",
    podName: key,
    podUid: `uid-${key}`,
    startedAt: clock.now(),
  });
const finish = (key: string, startedAt: Date) => samples.finish(key, { startedAt, finishedAt: clock.now() });
/** A kubelet whose containers use one core and 100 bytes, with values of now. */
const busy =
  (...keys: string[]) =>
  async () => {
    const started = Date.parse("2026-01-01T00:00:00Z");
    const at = clock.now().getTime();
    return new Map<string, Reading>(
      keys.map((key) => [
        `uid-${key}`,
        { cpu: { at, coreNanoSeconds: (at - started) * 1e6 }, memory: { at, workingSetBytes: 100 } },
      ]),
    );
  };

test("a node without runs gets no request, and none any more once its runs have ended", async () => {
  await clock.advance(60_000);
  expect(asked).toEqual([]);
  follow("a");
  await clock.advance(1_000);
  samples.forget("a");
  const before = asked.length;
  await clock.advance(3_600_000);
  expect(asked).toHaveLength(before);
  expect(closed).toEqual(["n1"]);
});

test("a run is sampled immediately, every 2 s while it is young, then every 5 s, in one request for all of a node", async () => {
  answer = busy("a", "b");
  follow("a");
  follow("b");
  await clock.advance(40_000);
  expect(asked.map(([, seconds]) => seconds)).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16, 21, 26, 31, 36]);
  expect(samples.read("a")).toMatchObject({ status: "collecting", averageCores: "1", latestBytes: "100" });
  expect(samples.read("b")).toEqual(samples.read("a"));
});

test("a new run does not wait, but many together cause only one request a second", async () => {
  follow("old");
  await clock.advance(30_000);
  asked = [];
  for (let index = 0; index < 50; index += 1) {
    follow(`new-${index}`);
    await clock.advance(100);
  }
  expect(asked.length).toBeGreaterThanOrEqual(4);
  expect(asked.length).toBeLessThanOrEqual(6);
});

test("what is read belongs to the pod with that uid alone", async () => {
  answer = busy("another");
  follow("a");
  await clock.advance(30_000);
  expect(samples.read("a")).toBeUndefined();
  expect(finish("a", new Date(0))).toEqual({ status: "unavailable", samples: 0 });
  expect(finish("never-followed", new Date(0))).toEqual({ status: "unavailable", samples: 0 });
});

test("a sample of after the end does not count", async () => {
  answer = busy("a");
  const startedAt = clock.now();
  follow("a");
  await clock.advance(9_000);
  const { samples: taken = 0 } = samples.read("a") ?? {};
  expect(
    samples.finish("a", { startedAt, finishedAt: new Date(clock.now().getTime() - 2_000) }),
  ).toMatchObject({
    status: "available",
    samples: taken - 1,
  });
  expect(finish("a", startedAt)).toMatchObject({ samples: taken });
  samples.forget("a");
  expect(samples.read("a")).toBeUndefined();
});

test("silent and dead kubelets delay no others, get requests less and less often, and soon again once they are back", async () => {
  answer = (address) =>
    address.host === "alive"
      ? busy("alive")()
      : address.host.startsWith("dead")
        ? Promise.reject(new Error("refused"))
        : new Promise((_, reject) => clock.setTimeout(() => reject(new Error("silent")), 5_000));
  for (let index = 0; index < 40; index += 1) {
    follow(`s-${index}`, `silent-${index}`);
    follow(`d-${index}`, `dead-${index}`);
  }
  await clock.advance(120_000);
  asked = [];
  follow("alive", "alive");
  await clock.advance(120_000);
  const of = (host: string) => asked.filter(([name]) => name === host).map(([, seconds]) => seconds);
  const pauses = of("alive").map((seconds, index, all) => seconds - (all[index - 1] ?? 120));
  expect(Math.max(...pauses)).toBeLessThanOrEqual(5);
  expect(of("dead-7").length).toBeLessThanOrEqual(5);
  expect(of("dead-7").length).toBeGreaterThanOrEqual(1);
  expect(results.filter((result) => result === "error").length).toBeGreaterThan(100);

  answer = busy("d-7");
  asked = [];
  await clock.advance(31_000 + 45_000);
  expect(of("dead-7").length).toBeGreaterThan(3);
});

test("a node that comes back at another address gets requests there, and the old connection is closed", async () => {
  follow("a");
  await clock.advance(1_000);
  addresses.set("n1", "10.0.0.9");
  await clock.advance(5_000);
  expect(asked.at(-1)?.[0]).toBe("10.0.0.9");
  expect(closed).toEqual(["n1"]);
});

test("once it is stopped it sends no more requests", async () => {
  follow("a");
  await clock.advance(1_000);
  stop.abort();
  await running;
  const before = asked.length;
  follow("b");
  await clock.advance(60_000);
  expect(asked).toHaveLength(before);
});

test("metrics of a run that ended between two operators are those that the first one measured", () => {
  const window = { startedAt: clock.now(), finishedAt: clock.now() };
  const sampledAt = clock.now().toISOString();
  const before = {
    status: "collecting" as const,
    samples: 4,
    sampledAt,
    averageCores: "0.5",
    peakCores: "0.75",
  };
  expect(samples.finish("never-followed", { ...window, before })).toEqual({
    status: "available",
    samples: 4,
    averageCores: "0.5",
    peakCores: "0.75",
  });
});

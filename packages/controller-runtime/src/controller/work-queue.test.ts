import { Registry } from "prom-client";
import { beforeEach, describe, expect, it } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { createRuntimeMetrics } from "../manager/runtime-metrics.ts";
import { WorkQueue, type WorkQueueOptions } from "./work-queue.ts";

let clock: FakeClock;

beforeEach(() => {
  clock = new FakeClock();
});

function queue(options: Partial<WorkQueueOptions> = {}): WorkQueue {
  return new WorkQueue({ name: "q", clock, random: () => 0, ...options });
}

/** The keys that are handed out now, in order; they stay under way. */
async function take(from: WorkQueue): Promise<string[]> {
  const keys: string[] = [];
  while (from.length > 0) {
    keys.push((await from.get()) ?? "");
  }
  return keys;
}

describe("WorkQueue", () => {
  it("holds a key once, in order of arrival", async () => {
    const q = queue();
    for (const key of ["a", "b", "a", "c", "b"]) {
      q.add(key);
    }
    expect(await take(q)).toEqual(["a", "b", "c"]);
  });

  it("hands a key to one worker at a time, and again when it was added meanwhile", async () => {
    const q = queue();
    q.add("a");
    expect(await q.get()).toBe("a");
    q.add("a");
    q.add("a");
    expect(q.length).toBe(0);
    q.done("a");
    expect(await take(q)).toEqual(["a"]);
    q.done("a");
    expect(q.idle).toBe(true);
  });

  it("hands out keys of low priority last, but one after three others", async () => {
    const q = queue();
    for (const key of ["r1", "r2", "r3"]) {
      q.addWithLowPriority(key);
    }
    for (const key of ["a", "b", "c", "d", "e"]) {
      q.add(key);
    }
    expect(q.length).toBe(8);
    const handed = await Promise.all(Array.from({ length: 8 }, () => q.get()));
    expect(handed).toEqual(["a", "b", "c", "r1", "d", "e", "r2", "r3"]);
    expect(q.length).toBe(0);
  });

  it("holds a key once, whatever its priority, and raises it", async () => {
    const q = queue();
    q.addWithLowPriority("r1");
    q.addWithLowPriority("r2");
    q.add("r2");
    q.addWithLowPriority("r2");
    expect(q.length).toBe(2);
    expect([await q.get(), await q.get()]).toEqual(["r2", "r1"]);
    // Under way: nothing has happened to it that the worker does not see.
    q.addWithLowPriority("r1");
    q.done("r1");
    expect(q.length).toBe(0);
  });

  it("wakes a worker that waits", async () => {
    const q = queue();
    const got = q.get();
    q.add("a");
    expect(await got).toBe("a");
  });

  it("adds later, at the earliest requested time", async () => {
    const q = queue();
    q.addAfter("a", 1_000);
    q.addAfter("a", 5_000);
    q.addAfter("a", 400);
    await clock.advance(399);
    expect(q.length).toBe(0);
    await clock.advance(1);
    expect(await take(q)).toEqual(["a"]);
    q.done("a");
    await clock.advance(10_000);
    expect(q.length).toBe(0);
  });

  it("backs a failing key off exponentially, up to the maximum, until it is forgotten", async () => {
    const q = queue({ backoff: { baseMs: 10, maxMs: 50 } });
    const delays: number[] = [];
    for (let failure = 0; failure < 5; failure += 1) {
      q.addRateLimited("a");
      const started = clock.monotonic();
      while (q.length === 0) {
        await clock.advance(1);
      }
      delays.push(clock.monotonic() - started);
      await take(q);
      q.done("a");
    }
    expect(delays).toEqual([10, 20, 40, 50, 50]);
    expect(q.failures("a")).toBe(5);
    q.forget("a");
    expect(q.failures("a")).toBe(0);
  });

  it("bounds failing keys together by the bucket", async () => {
    const q = queue({ backoff: { baseMs: 1, maxMs: 1 }, bucket: { perSecond: 10, burst: 2 } });
    for (const key of ["a", "b", "c", "d"]) {
      q.addRateLimited(key);
    }
    await clock.advance(1);
    expect(q.length).toBe(2);
    await clock.advance(100);
    expect(q.length).toBe(3);
    await clock.advance(100);
    expect(q.length).toBe(4);
  });

  it("delays a failing key without delaying a new event of it", async () => {
    const q = queue({ backoff: { baseMs: 60_000, maxMs: 60_000 } });
    q.addRateLimited("a");
    q.add("a");
    expect(await take(q)).toEqual(["a"]);
  });

  it("hands out nothing more once it is shut down", async () => {
    const q = queue();
    const waiting = q.get();
    q.addAfter("later", 10);
    q.shutDown();
    q.add("a");
    expect(await waiting).toBeUndefined();
    expect(await q.get()).toBeUndefined();
    expect(clock.pending).toBe(0);
  });

  it("reports depth, adds, retries and unfinished work", async () => {
    const registry = new Registry();
    const q = queue({ metrics: createRuntimeMetrics(registry) });
    q.add("a");
    q.add("b");
    q.addAfter("c", 1_000);
    await q.get();
    await clock.advance(500);
    const text = await registry.metrics();
    const label = '{name="q",controller="q"}';
    expect(text).toContain(`workqueue_depth${label} 1`);
    expect(text).toContain(`workqueue_adds_total${label} 2`);
    expect(text).toContain(`workqueue_retries_total${label} 1`);
    expect(text).toContain(`workqueue_unfinished_work_seconds${label} 0.5`);
    expect(text).toContain(`workqueue_longest_running_processor_seconds${label} 0.5`);
  });
});

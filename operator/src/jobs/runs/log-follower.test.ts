import { silentLogger } from "@slipway/process";
import { describe, expect, test } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { LogFollower } from "./log-follower.ts";
import type { RunLogSource, RunLogs } from "./ports.ts";

const run: RunLogSource = {
  organizationId: "o",
  namespace: "n",
  projectId: "p",
  runId: "r",
  scheduledAt: new Date(0),
  podName: "pod",
};

interface Stream {
  signal: AbortSignal;
  open: () => void;
  end: () => void;
}

/** Streams open and end when a test orders it, and when they are aborted. */
function following(limits?: { total: number; perKey: number }) {
  const clock = new FakeClock();
  const streams: Stream[] = [];
  const stored: number[] = [];
  const follow: RunLogs["follow"] = (_run, signal) => {
    const opened = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const number = streams.push({ signal, open: opened.resolve, end: ended.resolve });
    signal.addEventListener("abort", () => {
      opened.reject(signal.reason);
      ended.resolve();
    });
    const store = async () => {
      stored.push(number);
      return "stored" as const;
    };
    return opened.promise.then(() => ({ ended: ended.promise, store }));
  };
  const follower = new LogFollower({
    logs: { follow },
    clock,
    log: silentLogger,
    ...(limits ? { limits } : {}),
  });
  /** Whether the caller that stops the run may continue. */
  const begin = (uid: string, organizationId = "o") => {
    const begun = { goesOn: false };
    void follower.follow(uid, { ...run, organizationId }).then(() => {
      begun.goesOn = true;
    });
    return begun;
  };
  return { clock, follower, streams, stored, begin };
}

const never = new AbortController().signal;

describe("the caller that stops a run", () => {
  test("continues as soon as its log is open", async () => {
    const { clock, streams, begin } = following();
    const begun = begin("u");
    await clock.advance(900);
    expect(begun.goesOn).toBe(false);
    streams[0]?.open();
    await clock.advance(0);
    expect(begun.goesOn).toBe(true);
    expect(clock.pending).toBe(0);
  });

  test("continues after a second when the node is silent, and the log may open later", async () => {
    const { clock, follower, streams, stored, begin } = following();
    const begun = begin("u");
    await clock.advance(1_000);
    expect(begun.goesOn).toBe(true);
    streams[0]?.open();
    streams[0]?.end();
    await clock.advance(0);
    expect(await follower.store("u", never)).toBe("stored");
    expect(stored).toEqual([1]);
  });

  test("does not wait when nodes are silent to many", async () => {
    const { clock, begin } = following();
    const first = Array.from({ length: 8 }, (_, index) => begin(`u${index}`, index < 4 ? "o" : "p"));
    const next = begin("next", "q");
    await clock.advance(0);
    expect(first.map(({ goesOn }) => goesOn)).not.toContain(true);
    expect(next.goesOn).toBe(true);
  });

  test("waits although nodes are silent to many runs of another organization", async () => {
    const { clock, begin } = following();
    for (let index = 0; index < 8; index += 1) {
      begin(`u${index}`);
    }
    const other = begin("other", "other");
    await clock.advance(0);
    expect(other.goesOn).toBe(false);
  });

  // Shows: docs/jobs.md#limits-and-known-behaviour: 50 logs are read concurrently, 20 of one organization
  test("has its log read concurrently with sixty of another organization", async () => {
    const { clock, streams, begin } = following();
    for (let index = 0; index < 60; index += 1) {
      begin(`u${index}`);
    }
    expect(streams).toHaveLength(20);
    begin("other", "other");
    await clock.advance(0);
    expect(streams).toHaveLength(21);
  });

  test("does not wait for a log that is being followed already, nor for one beyond the limit", async () => {
    const { clock, streams, begin } = following({ total: 2, perKey: 2 });
    begin("u1");
    begin("u2");
    for (const { open } of streams) {
      open();
    }
    await clock.advance(60_000);
    expect([begin("u1"), begin("u3")].length).toBe(2);
    await clock.advance(0);
    expect(begin("u1")).toBeDefined();
    expect(streams).toHaveLength(2);
    // One has ended: its place is free.
    streams[0]?.end();
    await clock.advance(0);
    begin("u3");
    expect(streams).toHaveLength(3);
  });
});

describe("a followed log", () => {
  test("that cannot be opened is tried again after five seconds, while its container runs", async () => {
    const { clock, follower, streams, begin } = following();
    begin("u");
    streams[0]?.open();
    streams[0]?.end();
    await clock.advance(4_000);
    begin("u");
    expect(streams).toHaveLength(1);
    await clock.advance(1_000);
    begin("u");
    expect(streams).toHaveLength(2);
    // What had come before stays until there is something new.
    expect(await follower.store("u", never)).toBe("stored");
  });

  test("is stored as far as it came five seconds after its container's end", async () => {
    const { clock, follower, streams, stored, begin } = following();
    begin("u");
    streams[0]?.open();
    await clock.advance(0);
    const kept = follower.store("u", never);
    await clock.advance(4_900);
    expect(stored).toEqual([]);
    await clock.advance(100);
    expect(await kept).toBe("stored");
    expect(stored).toEqual([1]);
  });

  test("that never opened has nothing to store", async () => {
    const { clock, follower, begin } = following();
    begin("u");
    await clock.advance(1_000);
    expect(await follower.store("u", never)).toBe("unavailable");
    expect(await follower.store("unknown", never)).toBe("unavailable");
  });

  test("is aborted once its run is charged, or leadership is lost", async () => {
    const { clock, follower, streams, begin } = following();
    begin("settled");
    begin("other");
    streams[0]?.open();
    await clock.advance(0);
    follower.forget("settled");
    expect(streams.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    follower.stop();
    expect(streams.map(({ signal }) => signal.aborted)).toEqual([true, true]);
    const begun = begin("late");
    await clock.advance(0);
    expect(begun.goesOn).toBe(true);
    expect(streams).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });

  test("of long ago is forgotten when there are many", async () => {
    const { clock, follower, streams, begin } = following();
    for (let index = 0; index < 501; index += 1) {
      begin(`u${index}`);
      streams[index]?.open();
      streams[index]?.end();
      await clock.advance(0);
    }
    expect(await follower.store("u0", never)).toBe("unavailable");
    expect(await follower.store("u1", never)).toBe("stored");
    expect(await follower.store("u500", never)).toBe("stored");
  });

  test("is kept although another organization has many that are younger", async () => {
    const { clock, follower, streams, begin } = following();
    const uids = ["mine", ...Array.from({ length: 600 }, (_, index) => `u${index}`)];
    for (const [index, uid] of uids.entries()) {
      begin(uid, uid === "mine" ? "mine" : "o");
      streams[index]?.open();
      streams[index]?.end();
      await clock.advance(0);
    }
    expect(await follower.store("mine", never)).toBe("stored");
    expect(await follower.store("u0", never)).toBe("unavailable");
    expect(await follower.store("u599", never)).toBe("stored");
  });
});

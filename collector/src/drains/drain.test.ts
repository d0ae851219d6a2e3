import { type DrainedLine, type DrainPosition, StoreUnavailable } from "@slipway/analytics";
import type { LogDrain } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { outgoing } from "../../../test/kit/drains/lines.ts";
import { BOUNDS } from "./bounds.ts";
import { Drain } from "./drain.ts";
import { behind, type LineSource } from "./line-source.ts";
import { DeliveryError, type Receiver } from "./receiver.ts";
import { statusOf } from "./status.ts";

const CREATED = Date.parse("2026-11-29T12:00:00Z");
const resource = (status?: LogDrain["status"]): LogDrain => ({
  apiVersion: "slipway.dev/v1alpha1",
  kind: "LogDrain",
  metadata: {
    ...{ name: "d", namespace: "slipway-org-o1", uid: "u1", generation: 2 },
    creationTimestamp: "2026-11-29T12:00:00Z",
  },
  spec: { displayName: "D", syslog: { host: "logs.example.com", port: 6514 } },
  ...(status === undefined ? {} : { status }),
});

const stored = (number: number, ms: number): DrainedLine =>
  outgoing({ storedAt: String(CREATED + ms), offset: String(number), text: `line ${number}` });

/** Lines in the order in which they are given, which is that of the store. */
function sourceOf(all: readonly DrainedLine[]): LineSource {
  const isBehind = (line: DrainedLine, after: DrainPosition): boolean =>
    Number(line.storedAt) > Number(after[0]) ||
    (after.length > 1 && line.storedAt === after[0] && Number(line.offset) > Number(after[6]));
  const between = (after: DrainPosition, to: number) =>
    all.filter((line) => isBehind(line, after) && Number(line.storedAt) <= to);
  return {
    page: async (after, to, { lines }) => between(after, to).slice(0, lines),
    next: async (after, to) => {
      const [line] = between(after, to);
      return line && Number(line.storedAt);
    },
    count: async (after, to) => between(after, to).length,
  };
}

function receiverOf(send: Receiver["send"]) {
  return async (): Promise<Receiver> => ({ send, close: () => {} });
}

const turn = (drain: Drain, all: readonly DrainedLine[], horizon: number, send: Receiver["send"], now = 0) =>
  drain.deliver(
    {
      ...{ source: sourceOf(all), receiver: receiverOf(send), horizon },
      ...{ nameOf: () => "Shop", now: () => now },
    },
    new AbortController().signal,
  );

describe("a turn", () => {
  test("sends what is there in batches, across times without lines, and is caught up then", async () => {
    const all = [stored(1, 10), stored(2, 10), stored(3, 10), stored(4, 3_600_000)];
    const sent: string[][] = [];
    const drain = new Drain(resource(), "o1", undefined, { ...BOUNDS, lines: 2 });
    const horizon = CREATED + 7_200_000;
    const result = await turn(drain, all, horizon, async (lines) => {
      sent.push(lines.map(({ text }) => text));
      return { refused: 0 };
    });
    expect(sent).toEqual([["line 1", "line 2"], ["line 3"], ["line 4"]]);
    expect(result).toMatchObject({ delivered: 4, refused: 0, skipped: 0, failure: undefined });
    expect([drain.isBehind(horizon), drain.lagMs(horizon), drain.isDirty]).toEqual([false, 0, true]);
  });

  test("ends after a few batches, so that others have theirs", async () => {
    const all = Array.from({ length: 100 }, (_, index) => stored(index, index));
    const drain = new Drain(resource(), "o1", undefined, { ...BOUNDS, lines: 1, batches: 3 });
    const result = await turn(drain, all, CREATED + 10_000, async () => ({ refused: 0 }));
    expect(result.delivered).toBe(3);
    expect(drain.isBehind(CREATED + 10_000)).toBe(true);
  });

  // Shows: docs/log-drains.md#at-least-once: a slow receiver delays no other
  test("ends, and makes a slow drain of it, when its receiver takes long", async () => {
    const all = [stored(1, 1), stored(2, 2), stored(3, 3)];
    const drain = new Drain(resource(), "o1", undefined, { ...BOUNDS, lines: 1 });
    let now = 0;
    const deliver = (tookMs: number) =>
      drain.deliver(
        {
          source: sourceOf(all),
          receiver: receiverOf(async () => {
            now += tookMs;
            return { refused: 0 };
          }),
          ...{ horizon: CREATED + 10_000, nameOf: () => "Shop", now: () => now },
        },
        new AbortController().signal,
      );
    expect((await deliver(6_000)).delivered).toBe(1);
    expect(drain.isSlow).toBe(true);
    expect((await deliver(10)).delivered).toBe(2);
    expect(drain.isSlow).toBe(false);
  });

  test("stays where it was when a batch fails, until the receiver wants to be asked again", async () => {
    const drain = new Drain(resource(), "o1", undefined);
    const before = drain.position;
    const failure = new DeliveryError("ReceiverUnavailable", "away", { retryAfterMs: 30_000 });
    const result = await turn(drain, [stored(1, 10)], CREATED + 10_000, () => Promise.reject(failure), 1_000);
    expect([result.failure, drain.position, drain.isDirty]).toEqual([failure, before, false]);
    expect([drain.isDue(30_999), drain.isDue(31_000)]).toEqual([false, true]);
    // A year would be for good.
    const far = new DeliveryError("ReceiverUnavailable", "away", { retryAfterMs: 31_536_000_000 });
    await turn(drain, [stored(1, 10)], CREATED + 10_000, () => Promise.reject(far), 100_000);
    expect(drain.isDue(160_000)).toBe(true);
  });

  // Shows: docs/log-drains.md#at-least-once: lines that a receiver refuses for good are counted
  test("counts what is refused for good, and goes on behind it", async () => {
    const drain = new Drain(resource(), "o1", undefined);
    await turn(drain, [stored(1, 10), stored(2, 11)], CREATED + 10_000, async () => ({ refused: 1 }));
    expect([drain.refused, drain.outcome]).toEqual([1, "delivered"]);
  });

  test("leaves out what is older than a receiver may be behind, and counts it", async () => {
    const day = 86_400_000;
    const all = [stored(1, 10), stored(2, day), stored(3, 9 * day)];
    const sent: string[] = [];
    const drain = new Drain(resource(), "o1", undefined);
    const result = await turn(drain, all, CREATED + 10 * day, async (lines) => {
      sent.push(...lines.map(({ text }) => text));
      return { refused: 0 };
    });
    expect([sent, result.skipped, drain.skipped]).toEqual([["line 3"], 2, 2]);
  });
});

test("a drain continues behind what is saved, and a new one at its creation", () => {
  const position = behind(stored(5, 10));
  const saved = new Drain(resource(), "o1", { drain: "u1", version: 1, position, refused: 1, skipped: 2 });
  expect([saved.position, saved.refused, saved.skipped, saved.isNew]).toEqual([position, 1, 2, false]);
  const created = new Drain(resource(), "o1", undefined);
  expect([created.storedAt, created.isNew]).toEqual([CREATED - 1, true]);
});

test("a clock that is set back has lines sent again, and none left out", () => {
  const drain = new Drain(resource(), "o1", undefined);
  drain.passIdle(CREATED + 100_000);
  drain.rewind(CREATED + 50_000);
  expect([drain.storedAt, drain.isBehind(CREATED + 60_000)]).toEqual([CREATED + 50_000, true]);
});

describe("a status", () => {
  const now = new Date("2026-11-29T13:00:00Z");

  test("says what became of the last batch, and is the same while that is", async () => {
    const drain = new Drain(resource(), "o1", undefined);
    drain.readiness = "configured";
    drain.outcome = new DeliveryError("ReceiverUnavailable", "the receiver answers with 503");
    const first = statusOf(drain, 125_000, now);
    expect(first).toMatchObject({
      observedGeneration: 2,
      conditions: [
        { type: "Ready", status: "True", reason: "Configured" },
        { type: "Delivering", status: "False", reason: "ReceiverUnavailable" },
      ],
      lagSeconds: 120,
    });
    drain.resource = resource(first);
    expect(statusOf(drain, 179_000, new Date(now.getTime() + 30_000))).toEqual(first);
  });

  // Shows: docs/log-drains.md#what-is-sent: a drain whose lines are taken
  test("of a drain whose lines are taken stays the same for hours", async () => {
    const drain = new Drain(resource(), "o1", undefined);
    drain.readiness = "configured";
    const all = Array.from({ length: 6 }, (_, index) => stored(index, index * 3_600_000));
    let first: LogDrain["status"];
    for (let hour = 1; hour <= 6; hour += 1) {
      const horizon = CREATED + hour * 3_600_000;
      await turn(drain, all, horizon, async () => ({ refused: 0 }));
      const status = statusOf(drain, drain.lagMs(horizon), new Date(horizon));
      first ??= status;
      expect(status).toEqual(first);
      drain.resource = resource(status);
    }
  });

  test("of a process that has just begun is what it was", () => {
    const drain = new Drain(resource(), "o1", undefined);
    drain.readiness = "configured";
    drain.outcome = "delivered";
    const before = { ...statusOf(drain, 0, now), observedGeneration: 1 };
    expect(statusOf(new Drain(resource(before), "o1", undefined), 59_000, now)).toEqual(before);
  });
});

describe("a clock that is set back while a batch is on its way", () => {
  const all = [stored(1, 10_000), stored(2, 10_001)];

  test("has its lines sent again", async () => {
    const drain = new Drain(resource(), "o1", undefined);
    const { delivered } = await turn(drain, all, CREATED + 20_000, async () => {
      drain.rewind(CREATED + 5_000);
      return { refused: 0 };
    });
    expect([delivered, drain.storedAt < CREATED + 10_000, drain.isBehind(CREATED + 20_000)]).toEqual([
      2,
      true,
      true,
    ]);
    const sent: string[] = [];
    await turn(drain, all, CREATED + 20_000, async (lines) => {
      sent.push(...lines.map(({ text }) => text));
      return { refused: 0 };
    });
    expect(sent).toEqual(["line 1", "line 2"]);
  });

  test("is no matter of a drain that was created a moment ago, over and over", async () => {
    const drain = new Drain(resource(), "o1", undefined);
    await turn(drain, all, CREATED + 20_000, async () => {
      drain.beginBefore(CREATED + 20_000);
      return { refused: 0 };
    });
    expect(drain.isBehind(CREATED + 20_000)).toBe(false);
  });
});

test("a page that takes the store too much is smaller the next time, until it is read", async () => {
  const drain = new Drain(resource(), "o1", undefined, { ...BOUNDS, windowMs: 1_000 });
  const all = Array.from({ length: 8 }, (_, index) => stored(index, index * 100));
  const windows: number[] = [];
  const source: LineSource = {
    ...sourceOf(all),
    page: async (after, to, most, signal) => {
      windows.push(to - Number(after[0]));
      if (to - Number(after[0]) > 300) {
        throw new StoreUnavailable(new Error("memory"), true);
      }
      return sourceOf(all).page(after, to, most, signal);
    },
  };
  const sent: string[] = [];
  const receiver = receiverOf(async (lines) => {
    sent.push(...lines.map(({ text }) => text));
    return { refused: 0 };
  });
  const where = { source, receiver, horizon: CREATED + 2_000, nameOf: () => "Shop", now: () => 0 };
  for (let attempt = 0; attempt < 20 && drain.isBehind(CREATED + 2_000); attempt += 1) {
    await drain.deliver(where, new AbortController().signal).catch(() => {});
  }
  expect(windows.slice(0, 3)).toEqual([1_000, 500, 250]);
  expect(sent).toEqual(all.map(({ text }) => text));
});

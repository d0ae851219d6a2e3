import { describe, expect, it, test } from "vitest";
import { decideSleep, SETTLE_MS, type SleepInput } from "./decision.ts";

/** A tenth of the time without a request. */
const DRAIN_MS = 60_000;
const now = new Date("2026-01-31T12:00:00.000Z");
const idle: SleepInput = {
  sleep: undefined,
  afterSeconds: 600,
  idleSeconds: 600,
  isSettled: true,
  isDeploying: false,
  isWakeRequested: false,
  generation: 3,
  isRouted: true,
  confirmedMs: undefined,
  readyMs: undefined,
  wakeMs: 300_000,
  now,
  newId: () => "new",
};
const sleepIn = (phase: "entering" | "asleep" | "waking", since = now) =>
  ({ id: "old", phase, since: since.toISOString(), generation: 3 }) as const;
const phaseOf = (input: Partial<SleepInput>) => decideSleep({ ...idle, ...input }).sleep?.phase;

describe("a project that runs", () => {
  it("enters a sleep when it had no request for long enough", () => {
    expect(decideSleep(idle)).toEqual({
      sleep: { id: "new", phase: "entering", since: now.toISOString(), generation: 3 },
      againInMs: 1_000,
    });
  });

  // Shows: docs/sleep.md#when-a-project-sleeps: only when its owner and its plan allow it, its version
  // Shows: docs/sleep.md#when-a-project-sleeps: not while it is unknown when it was last requested: the
  it.each<[string, Partial<SleepInput>]>([
    ["it had a request later", { idleSeconds: 599 }],
    ["it is unknown when it had its last one", { idleSeconds: undefined }],
    ["its owner or its plan does not allow it", { afterSeconds: undefined }],
    ["its version does not serve", { isSettled: false }],
    ["a deployment is under way", { isDeploying: true }],
  ])("does not while %s", (_, input) => {
    expect(phaseOf(input)).toBeUndefined();
  });

  it("is decided again when its time may have come", () => {
    expect(decideSleep({ ...idle, idleSeconds: 590 }).againInMs).toBe(10_000);
    expect(decideSleep({ ...idle, afterSeconds: undefined })).toEqual({ sleep: undefined });
  });
});

describe("a project that enters a sleep", () => {
  const entering = sleepIn("entering");

  it("keeps its instances until the ingress has sent its requests to the activator for a while", () => {
    expect(phaseOf({ sleep: entering })).toBe("entering");
    expect(phaseOf({ sleep: entering, confirmedMs: DRAIN_MS - 1 })).toBe("entering");
    expect(phaseOf({ sleep: entering, confirmedMs: DRAIN_MS })).toBe("asleep");
  });

  it.each<[string, Partial<SleepInput>]>([
    ["a request comes", { isWakeRequested: true }],
    ["its spec changes", { generation: 4 }],
    ["a deployment begins", { isDeploying: true }],
    ["it is no longer to sleep", { afterSeconds: undefined }],
    ["an instance fails", { isSettled: false }],
    ["the ingress does not follow", { confirmedMs: undefined, now: new Date(now.getTime() + 121_000) }],
  ])("runs on when %s", (_, input) => {
    expect(phaseOf({ sleep: entering, confirmedMs: DRAIN_MS, readyMs: 1, ...input })).toBeUndefined();
  });

  // Its instances were stopped by a process that ended before it wrote so, or an instance fails.
  it.each<[string, Partial<SleepInput>]>([
    ["without a request", { isSettled: false }],
    ["and a request has come", { isSettled: false, isWakeRequested: true }],
    ["and a request has come that is all that is known", { isWakeRequested: true }],
  ])("keeps its requests at the activator until an instance is ready, where none is, %s", (_, input) => {
    expect(phaseOf({ sleep: entering, confirmedMs: DRAIN_MS, readyMs: undefined, ...input })).toBe("waking");
  });

  it("waits for ten seconds at the least and for a minute at most", () => {
    const asleepAfter = (afterSeconds: number, confirmedMs: number) =>
      phaseOf({ sleep: entering, afterSeconds, confirmedMs }) === "asleep";
    expect([asleepAfter(10, 9_999), asleepAfter(10, 10_000)]).toEqual([false, true]);
    expect([asleepAfter(200, 19_999), asleepAfter(200, 20_000)]).toEqual([false, true]);
    expect([asleepAfter(86_400, 59_999), asleepAfter(86_400, 60_000)]).toEqual([false, true]);
  });
});

it("says when it is the ingress because of which a project does not sleep", () => {
  const late = { ...idle, sleep: sleepIn("entering"), now: new Date(now.getTime() + 121_000) };
  expect(decideSleep(late)).toEqual({ sleep: undefined, isObstructed: true });
  expect(decideSleep({ ...late, readyMs: 1, isWakeRequested: true })).toEqual({ sleep: undefined });
});

describe("a project that is asleep", () => {
  const asleep = sleepIn("asleep");

  it("stays so without a change, whatever is known of requests", () => {
    expect(decideSleep({ ...idle, sleep: asleep, idleSeconds: undefined })).toEqual({ sleep: asleep });
    expect(phaseOf({ sleep: asleep, isSettled: false, now: new Date(0) })).toBe("asleep");
  });

  // Shows: docs/sleep.md#waking: a change of the spec, a deployment, and the end of what allows the
  it.each<[string, Partial<SleepInput>]>([
    ["a request comes", { isWakeRequested: true }],
    ["its spec changes", { generation: 4 }],
    ["a deployment begins", { isDeploying: true }],
    ["it is no longer to sleep", { afterSeconds: undefined }],
  ])("wakes when %s, as the same sleep", (_, input) => {
    expect(decideSleep({ ...idle, sleep: asleep, ...input }).sleep).toMatchObject({
      id: "old",
      phase: "waking",
    });
  });

  // Shows: docs/sleep.md#upgrades-and-rollbacks: An operator that knows no sleep leads the routes to
  it("runs where an operator that knows no sleep has led its routes to instances", () => {
    expect(phaseOf({ sleep: asleep, isRouted: false })).toBeUndefined();
  });
});

test("a project that wakes has the activator's help until its instances have been ready for a while, or never will be", () => {
  const waking = sleepIn("waking");
  expect(phaseOf({ sleep: waking })).toBe("waking");
  expect(phaseOf({ sleep: waking, readyMs: SETTLE_MS - 1 })).toBe("waking");
  expect(phaseOf({ sleep: waking, readyMs: SETTLE_MS })).toBeUndefined();
  expect(phaseOf({ sleep: waking, now: new Date(now.getTime() + 300_000) })).toBeUndefined();
});

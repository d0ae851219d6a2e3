import { Readable } from "node:stream";
import { KubeError } from "@slipway/controller-runtime";
import type { BuildLogChunk } from "@slipway/ledger";
import { silentLogger, systemClock } from "@slipway/process";
import { afterEach, expect, test } from "vitest";
import { LogFollower } from "./log-follower.ts";
import type { LogSource } from "./log-stream.ts";

const source: LogSource = {
  organizationId: "alpha",
  projectId: "pshop",
  buildId: "b1",
  namespace: "slipway-builds",
  podName: "b1-1",
  podUid: "u1",
  attempt: 1,
};
const line = (seq: number, more: object = {}) =>
  `${JSON.stringify({ seq, at: "2026-01-01T00:00:00Z", level: "info", step: "fetch", message: `line ${seq}`, ...more })}\n`;

let stop = new AbortController();
afterEach(() => stop.abort());

/** A kubelet with a queue of answers; further requests wait. */
function setUp(answers: (() => Readable)[], monotonic = systemClock.monotonic) {
  stop = new AbortController();
  const asked: (boolean | undefined)[] = [];
  const rows = new Map<number, BuildLogChunk>();
  let written = 0;
  let broken = 0;
  const kept = Promise.withResolvers<void>();
  const follower = new LogFollower({
    client: {
      streamPodLog: async (_, { follow }) => {
        asked.push(follow);
        const answer = answers.shift();
        if (!answer) {
          throw new KubeError({ status: 404, reason: "NotFound", message: "no pod" });
        }
        return answer();
      },
    },
    store: async (_, lines) => {
      if (broken > 0) {
        broken -= 1;
        throw new Error("the ledger is away");
      }
      for (const each of lines) {
        written += 1;
        rows.set(each.sequence, each);
      }
    },
    clock: {
      ...systemClock,
      monotonic,
      setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms / 20),
    },
    log: silentLogger,
    onStored: () => kept.resolve(),
  });
  follower.start(stop.signal);
  return {
    follower,
    asked,
    kept: kept.promise,
    fail: (times: number) => {
      broken = times;
    },
    messages: () => [...rows].toSorted(([a], [b]) => a - b).map(([, { message }]) => message),
    written: () => written,
  };
}

const until = async (what: () => boolean) => {
  while (!what()) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

test("lines are in the ledger while the container still runs, and the end is read once it has ended", async () => {
  const live = new Readable({ read() {} });
  const { follower, messages, asked, kept, written } = setUp([
    () => live,
    () => Readable.from([Buffer.from(line(1) + line(2) + line(3))]),
  ]);
  live.push(line(1));
  expect(follower.follow(source, [{ container: "fetch", ended: false }])).toBe(true);
  await until(() => messages().length === 1);
  live.push(line(2));
  await until(() => messages().length === 2);
  expect(follower.follow(source, [{ container: "fetch", ended: true }])).toBe(false);
  live.push(null);
  await kept;
  expect(messages()).toEqual(["line 1", "line 2", "line 3"]);
  expect(written()).toBe(3);
  expect(asked).toEqual([true, undefined]);
  expect(follower.follow(source, [{ container: "fetch", ended: true }])).toBe(true);
});

test("lines of a container are stored only after all of the one before, though both are read concurrently", async () => {
  const fetch = new Readable({ read() {} });
  const build = new Readable({ read() {} });
  const { follower, messages } = setUp([() => fetch, () => build]);
  follower.follow(source, [
    { container: "fetch", ended: false },
    { container: "build", ended: false },
  ]);
  build.push(line(1, { step: "plan", message: "planned" }));
  build.push(line(1, { step: "build", message: "built" }));
  fetch.push(line(1));
  await until(() => messages().length === 1);
  fetch.push(line(2));
  await until(() => messages().length === 2);
  // Its container's termination was not observed yet.
  fetch.push(line(3, { message: "", last: true }));
  await until(() => messages().length === 4);
  expect(messages()).toEqual(["line 1", "line 2", "planned", "built"]);
});

test("a container that marked the end of its log is not read again once it has terminated", async () => {
  const live = new Readable({ read() {} });
  const { follower, messages, asked } = setUp([() => live]);
  follower.follow(source, [{ container: "fetch", ended: false }]);
  live.push(line(1) + line(2, { message: "", last: true }));
  await until(() => follower.follow(source, [{ container: "fetch", ended: true }]));
  expect(messages()).toEqual(["line 1"]);
  expect(asked).toEqual([true]);
});

test("lines of a container do not wait for one whose log is lost", async () => {
  const { follower, messages, kept } = setUp([
    () => {
      throw new KubeError({ status: 404, reason: "NotFound", message: "no pod" });
    },
    () => Readable.from([Buffer.from(line(1, { step: "build", message: "built" }))]),
  ]);
  follower.follow(source, [
    { container: "fetch", ended: true },
    { container: "build", ended: true },
  ]);
  await kept;
  await until(() => messages().length === 1);
  expect(messages()).toEqual(["built"]);
});

test("an interrupted reading is restarted, and no line is missing", async () => {
  const torn = () =>
    Readable.from(
      (function* () {
        yield Buffer.from(line(1) + line(2).slice(0, 10));
        throw new Error("socket hang up");
      })(),
    );
  const { follower, messages, kept } = setUp([
    torn,
    () => Readable.from([Buffer.from(line(1) + line(2))]),
    () => Readable.from([Buffer.from(line(1) + line(2) + line(3))]),
  ]);
  follower.follow(source, [{ container: "fetch", ended: false }]);
  await until(() => messages().length === 2);
  follower.follow(source, [{ container: "fetch", ended: true }]);
  await kept;
  expect(messages()).toEqual(["line 1", "line 2", "line 3"]);
});

test("while the ledger is unavailable no log counts as stored", async () => {
  const whole = () => Readable.from([Buffer.from(line(1) + line(2))]);
  const { follower, messages, kept, fail, asked } = setUp([whole, whole, whole]);
  fail(2);
  follower.follow(source, [{ container: "fetch", ended: true }]);
  await until(() => asked.length === 2);
  expect(follower.follow(source, [{ container: "fetch", ended: true }])).toBe(false);
  await kept;
  expect(messages()).toEqual(["line 1", "line 2"]);
});

test("a log is not lost while the ledger is unavailable, however long that is", async () => {
  const whole = () => Readable.from([Buffer.from(line(1) + line(2))]);
  // A second for each: longer than the timeout of an unreadable log.
  const tries = 70;
  let seconds = 0;
  const { follower, messages, kept, fail } = setUp(
    Array.from({ length: tries + 1 }, () => whole),
    () => {
      seconds += 1;
      return seconds * 1_000;
    },
  );
  fail(tries);
  follower.follow(source, [{ container: "fetch", ended: true }]);
  await kept;
  expect(messages()).toEqual(["line 1", "line 2"]);
});

test("a deleted pod does not block the end of its build", async () => {
  const { follower, kept, messages } = setUp([]);
  follower.follow(source, [{ container: "fetch", ended: true }]);
  await kept;
  expect(messages()).toEqual([]);
});

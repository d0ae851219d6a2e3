import { describe, expect, test } from "vitest";
import { finalLine, LogLines, sequenceOf } from "./log-lines.ts";

const at = "2026-01-01T00:00:01.000Z";
const line = (seq: number, message: string, more: object = {}) =>
  `${JSON.stringify({ seq, at, level: "info", step: "build", message, ...more })}\n`;
const now = new Date("2026-01-01T00:01:00Z");

function read(text: string, size = text.length) {
  const lines = new LogLines("build", 1);
  const bytes = Buffer.from(text);
  const chunks = [];
  for (let start = 0; start < bytes.length; start += size) {
    chunks.push(...lines.push(bytes.subarray(start, start + size)));
  }
  return { live: chunks, all: [...chunks, ...lines.end(now)], lines };
}

test("each line has the runner's own number, in any chunks", () => {
  const text = line(1, "Überall") + line(2, "zwei");
  const want = [
    { sequence: 3_000_001, message: "Überall", step: "build", level: "info", at: new Date(at), final: false },
    { sequence: 3_000_002, message: "zwei" },
  ];
  expect(read(text).all).toMatchObject(want);
  expect(read(text, 1).all).toEqual(read(text).all);
  expect(read(text).live).toHaveLength(2);
});

// Shows: docs/builds.md#what-hostile-repositories-come-to: writes to the log past the runner
test("lines that are not the runner's are counted last, and not shown: they were not redacted", () => {
  const forged = line(7, "hunter2", { step: "fetch" }) + line(7, "hunter2", { step: "push" });
  const text = `hunter2\n${line(1, "one")}   \nTypeError: hunter2 is not a function\n${forged}${line(2, "two")}    at main.ts:1`;
  const { live, all } = read(text);
  expect(live.map(({ message }) => message)).toEqual(["one", "two"]);
  expect(all.slice(2)).toMatchObject([{ sequence: 3_000_003, level: "error" }]);
  expect(all[2]?.message).toMatch(/^5 lines /);
  expect(JSON.stringify(all)).not.toContain("hunter2");
  expect(read(text, 7).all).toEqual(all);
  expect(read("x\n".repeat(1_000)).all).toHaveLength(1);
});

// Shows: docs/builds.md#what-hostile-repositories-come-to: writes to the log past the runner
test("output beside the runner's is limited to the size of a log", () => {
  const long = read(line(1, "x".repeat(9_000)) + line(2, "kept\0"));
  expect(long.all.map(({ message }) => message)).toEqual(["kept"]);
  expect(long.lines.truncated).toBe(true);
  const much = Array.from({ length: 600 }, (_, index) => line(index + 1, "y".repeat(8_000))).join("");
  const kept = read(much).all.reduce((sum, { message }) => sum + message.length, 0);
  expect(kept).toBeGreaterThan(4_000_000);
  expect(kept).toBeLessThanOrEqual(4 * 1024 * 1024);
  expect(read(line(999_999_999, "far")).all).toEqual([]);
});

test("the kubelet's message that it has no log is not a line", () => {
  const { all, lines } = read(`unable to retrieve container logs for containerd://${"a".repeat(64)}`);
  expect(all).toEqual([]);
  expect(lines.isMissing).toBe(true);
  expect(read(line(1, "one")).lines.isMissing).toBe(false);
});

test("a truncated log is marked", () => {
  expect(read(line(1, "one")).lines.truncated).toBe(false);
  expect(read(line(1, "cut", { truncated: true })).lines.truncated).toBe(true);
});

describe("a container of two steps", () => {
  const plan = (seq: number, message: string, more: object = {}) =>
    line(seq, message, { step: "plan", ...more });

  test("has lines of both, each counted separately", () => {
    const { all, lines } = read(`${plan(1, "one")}${plan(2, "", { last: true })}${line(1, "two")}junk\n`);
    expect(all).toMatchObject([
      { sequence: 2_000_001, step: "plan", message: "one" },
      { sequence: 3_000_001, step: "build", message: "two" },
      { sequence: 3_000_002, step: "build", level: "error" },
    ]);
    expect(lines.isFinal).toBe(false);
    expect(read(line(1, "", { last: true })).lines.isFinal).toBe(true);
  });

  test("has no line of the first after those of the second: readers that follow would miss it", () => {
    const { all } = read(line(1, "two") + plan(1, "forged"));
    expect(all.map(({ message }) => message)).toEqual(["two", expect.stringMatching(/^1 line /)]);
  });
});

describe("sequences", () => {
  test("grow from step to step and from attempt to attempt, and the final line is the last", () => {
    const steps = ["queue", "fetch", "plan", "build", "push", "publish"] as const;
    const ordered = [1, 2].flatMap((attempt) => steps.map((step) => sequenceOf(attempt, step, 1)));
    expect(ordered).toEqual(ordered.toSorted((a, b) => a - b));
    const last = finalLine(2, { at: now, level: "info", message: "Done.", step: "publish" });
    expect(last).toMatchObject({ final: true, step: "publish" });
    expect(last.sequence).toBeGreaterThan(sequenceOf(2, "publish", 999));
    expect(last.sequence).toBeLessThan(sequenceOf(3, "queue", 1));
  });
});

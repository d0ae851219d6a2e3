import { describe, expect, it } from "vitest";
import { MAX_LINE_BYTES, newestLines, parseLog, positionAfter, sinceTime, skipUntil } from "./lines.ts";

const newest = (...args: Parameters<typeof newestLines>) => newestLines(...args).map(({ text }) => text);
const texts = (log: string | Buffer) => parseLog(Buffer.from(log)).map(({ text }) => text);

describe("parseLog", () => {
  it("strips the node's time, and nothing of what the application wrote", () => {
    const log =
      "2026-03-01T10:00:00.000000001Z plain\n" +
      "2026-03-01T10:00:01Z   2026-01-01T00:00:00Z own time\n" +
      "2026-03-01T12:00:02.5+02:00 \n" +
      "2026-03-01T10:00:03.5Z\n" +
      "2026-03-01T10:00:04.5Z without an end";
    expect(texts(log)).toEqual(["plain", "  2026-01-01T00:00:00Z own time", "", "", "without an end"]);
  });

  it("reads times of any zone to the nanosecond", () => {
    const [utc, east] = parseLog(
      Buffer.from("2026-03-01T10:00:00.123456789Z a\n2026-03-01T12:00:00.123456790+02:00 b\n"),
    );
    expect((east?.time ?? 0n) - (utc?.time ?? 0n)).toBe(1n);
  });

  it("leaves out what the node itself reports", () => {
    expect(texts("unable to retrieve container logs for containerd://abc")).toEqual([]);
    expect(texts("")).toEqual([]);
  });

  it("keeps the order of lines when the node's clock went back", () => {
    const lines = parseLog(Buffer.from("2026-03-01T10:00:05Z a\n2026-03-01T09:00:00Z b\n"));
    expect(newest([lines], { maxLines: 9, maxBytes: 99 })).toEqual(["a", "b"]);
  });

  it("replaces bytes that are no UTF-8", () => {
    const line = Buffer.concat([
      Buffer.from("2026-03-01T10:00:00Z a"),
      Buffer.from([0xff, 0xfe]),
      Buffer.from("b\n"),
    ]);
    expect(texts(line)).toEqual(["a\ufffd\ufffdb"]);
  });

  it("cuts a line that is too long between two characters, and says so", () => {
    const [text = ""] = texts(`2026-03-01T10:00:00Z a${"€".repeat(MAX_LINE_BYTES)}\n`);
    expect(text).toMatch(/^a€+ …$/);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_LINE_BYTES + 4);
    expect(Buffer.byteLength(text)).toBeGreaterThan(MAX_LINE_BYTES - 4);
  });
});

describe("newestLines", () => {
  const log = (...entries: [time: number, text: string][]) =>
    entries.map(([time, text]) => ({ time: BigInt(time), text }));

  it("merges by time and keeps each instance's own order", () => {
    const one = log([1, "a1"], [3, "a3"], [3, "a3b"]);
    const two = log([2, "b2"], [3, "b3"], [4, "b4"]);
    expect(newest([one, two], { maxLines: 9, maxBytes: 99 })).toEqual(["a1", "b2", "a3", "a3b", "b3", "b4"]);
  });

  // Shows: docs/applications.md#project-settings: logs: newest 1,000 lines in at most 256 KiB; of a
  it("keeps the newest within the number of lines and of bytes", () => {
    const lines = log([1, "one"], [2, "two"], [3, "€"]);
    expect(newest([lines], { maxLines: 2, maxBytes: 99 })).toEqual(["two", "€"]);
    expect(newest([lines], { maxLines: 9, maxBytes: 8 })).toEqual(["two", "€"]);
    expect(newest([lines], { maxLines: 9, maxBytes: 7 })).toEqual(["€"]);
    expect(newest([], { maxLines: 9, maxBytes: 7 })).toEqual([]);
  });
});

const lines = (...times: number[]) =>
  times.map((time, at) => ({ time: BigInt(time), text: `${time}/${at}` }));
const textsOf = (log: { text: string }[]) => log.map(({ text }) => text);

describe("how far a log was read", () => {
  it("is behind the newest line, with all of its very time", () => {
    expect(positionAfter([])).toBeUndefined();
    expect(positionAfter(lines(1, 2, 2))).toEqual({ time: 2n, lines: 2 });
    expect(positionAfter(lines(2), { time: 2n, lines: 2 })).toEqual({ time: 2n, lines: 3 });
    expect(positionAfter(lines(1), { time: 2n, lines: 2 })).toEqual({ time: 2n, lines: 2 });
  });

  it("leaves out what was read, line by line of one time, over several pieces", () => {
    const fresh = skipUntil({ time: 2n, lines: 2 });
    expect(textsOf(fresh(lines(1, 2)))).toEqual([]);
    expect(textsOf(fresh(lines(2, 2, 3)))).toEqual(["2/1", "3/2"]);
    // A node's clock that went back takes nothing away from then on.
    expect(textsOf(fresh(lines(1)))).toEqual(["1/0"]);
    expect(textsOf(skipUntil(undefined)(lines(1, 2)))).toEqual(["1/0", "2/1"]);
  });

  it("leaves out all of a time, where it is not known how many were read of it", () => {
    const fresh = skipUntil({ time: 2n, lines: Number.POSITIVE_INFINITY });
    expect(textsOf(fresh(lines(2, 2, 3)))).toEqual(["3/2"]);
  });

  it("is sent to nodes by its second", () => {
    expect(sinceTime({ time: 1_767_225_599_999_999_999n, lines: 1 })).toBe("2025-12-31T23:59:59Z");
  });
});

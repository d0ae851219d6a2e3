import { describe, expect, it } from "vitest";
import { positionAfter, sinceTime, skipUntil } from "./position.ts";

const lines = (...times: number[]) =>
  times.map((time, at) => ({ time: BigInt(time), text: `${time}/${at}` }));
const texts = (log: { text: string }[]) => log.map(({ text }) => text);

describe("how far a log was read", () => {
  it("is behind the newest line, with all of its very time", () => {
    expect(positionAfter([])).toBeUndefined();
    expect(positionAfter(lines(1, 2, 2))).toEqual({ time: 2n, lines: 2 });
    expect(positionAfter(lines(2), { time: 2n, lines: 2 })).toEqual({ time: 2n, lines: 3 });
    expect(positionAfter(lines(1), { time: 2n, lines: 2 })).toEqual({ time: 2n, lines: 2 });
  });

  it("leaves out what was read, line by line of one time, over several pieces", () => {
    const fresh = skipUntil({ time: 2n, lines: 2 });
    expect(texts(fresh(lines(1, 2)))).toEqual([]);
    expect(texts(fresh(lines(2, 2, 3)))).toEqual(["2/1", "3/2"]);
    // A node's clock that went back takes nothing away from then on.
    expect(texts(fresh(lines(1)))).toEqual(["1/0"]);
    expect(texts(skipUntil(undefined)(lines(1, 2)))).toEqual(["1/0", "2/1"]);
  });

  it("leaves out all of a time, where it is not known how many were read of it", () => {
    const fresh = skipUntil({ time: 2n, lines: Number.POSITIVE_INFINITY });
    expect(texts(fresh(lines(2, 2, 3)))).toEqual(["3/2"]);
  });

  it("is sent to nodes by its second", () => {
    expect(sinceTime({ time: 1_767_225_599_999_999_999n, lines: 1 })).toBe("2025-12-31T23:59:59Z");
  });
});

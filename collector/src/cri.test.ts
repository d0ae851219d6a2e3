import { describe, expect, test } from "vitest";
import { LineAssembler, parseCriLine } from "./cri.ts";

const cri = (text: string) => parseCriLine(Buffer.from(text));
const time = "2026-11-22T04:42:09.175373603Z";

test.each([
  [`${time} stdout F {"a":1}`, { stream: "stdout", isPartial: false, content: '{"a":1}' }],
  [`${time} stderr P abc`, { stream: "stderr", isPartial: true, content: "abc" }],
  [`${time} stdout F `, { stream: "stdout", isPartial: false, content: "" }],
  [`${time} stdout F`, { stream: "stdout", isPartial: false, content: "" }],
  [`${time} stdout F:more two words`, { stream: "stdout", isPartial: false, content: "two words" }],
])("%s", (text, want) => {
  const line = cri(text);
  expect({ ...line, content: line?.content.toString() }).toEqual({ ...want, time });
});

test.each([
  "",
  " ",
  "abc",
  `${time} stdout`,
  `${time} stdin F x`,
  `${time} stdout X x`,
  `${time} stdout Fx y`,
])("%j is no line of a container's log", (text) => {
  expect(cri(text)).toBeUndefined();
});

describe("pieces", () => {
  const piece = (isPartial: boolean, text: string) => ({
    stream: "stdout",
    isPartial,
    content: Buffer.from(text),
  });

  test("are put together", () => {
    const assembler = new LineAssembler(100);
    expect(assembler.add(piece(false, "whole"))?.toString()).toBe("whole");
    expect(assembler.add(piece(true, "ab"))).toBeUndefined();
    expect(assembler.isOpen).toBe(true);
    expect(assembler.add(piece(true, "cd"))).toBeUndefined();
    expect(assembler.add(piece(false, ""))?.toString()).toBe("abcd");
    expect(assembler.isOpen).toBe(false);
  });

  test("of a line that is too long are dropped, and the next line is whole", () => {
    const assembler = new LineAssembler(5);
    for (const text of ["abc", "def", "ghi"]) {
      expect(assembler.add(piece(true, text))).toBeUndefined();
    }
    expect(assembler.add(piece(false, "x"))).toBe("oversize");
    expect(assembler.add(piece(false, "fine"))?.toString()).toBe("fine");
    expect(assembler.add(piece(false, "longer"))).toBe("oversize");
  });
});

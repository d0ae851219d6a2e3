import { describe, expect, it } from "vitest";
import { EventParser } from "./sse.ts";

const whole =
  ': hello\n\nid: 1\nevent: log\ndata: {"a":1}\n\ndata: one\ndata:two\n\nid: 2\r\nevent: end\r\ndata: x\r\n\r\n';
const events = [
  { name: "log", data: '{"a":1}', id: "1" },
  { name: "message", data: "one\ntwo", id: "1" },
  { name: "end", data: "x", id: "2" },
];

describe("events of a stream", () => {
  it("are read, comments and unknown fields are not", () => {
    expect(new EventParser().push(whole)).toEqual(events);
    expect(new EventParser().push("retry: 5\nnonsense\nevent: none\n\n")).toEqual([]);
  });

  it("are the same wherever the text is cut", () => {
    for (let size = 1; size < whole.length; size += 1) {
      const parser = new EventParser();
      const found = [];
      for (let at = 0; at < whole.length; at += size) {
        found.push(...parser.push(whole.slice(at, at + size)));
      }
      expect([size, found]).toEqual([size, events]);
    }
  });

  it("are given once they have ended, and not before", () => {
    const parser = new EventParser();
    expect(parser.push("data: a\n")).toEqual([]);
    expect(parser.push("\n")).toEqual([{ name: "message", data: "a", id: undefined }]);
  });

  it("are not gathered without end", () => {
    const parser = new EventParser();
    expect(() => {
      for (let piece = 0; piece < 3_000; piece += 1) {
        parser.push(`data: ${"x".repeat(1_000)}\n`);
      }
    }).toThrow("too long");
    expect(() => new EventParser().push("x".repeat(2_000_000))).toThrow("too long");
  });
});

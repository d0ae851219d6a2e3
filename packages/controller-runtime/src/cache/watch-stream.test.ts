import { describe, expect, it } from "vitest";
import { parseWatchEvent, splitLines } from "./watch-stream.ts";

async function lines(...chunks: (string | Buffer)[]): Promise<string[]> {
  async function* stream() {
    for (const chunk of chunks) {
      yield Buffer.from(chunk);
    }
  }
  const found: string[] = [];
  for await (const line of splitLines(stream())) {
    found.push(line);
  }
  return found;
}

describe("splitLines", () => {
  it.each([
    ["one chunk, two lines", ["a\nb\n"], ["a", "b"]],
    ["a line over three chunks", ["a", "b", "c\n"], ["abc"]],
    ["a cut line at the end", ["a\nb"], ["a"]],
    ["blank lines", ["\n\r\n a\n"], [" a"]],
  ])("splits %s", async (_name, chunks, want) => {
    expect(await lines(...chunks)).toEqual(want);
  });

  it("joins a character that is cut between chunks", async () => {
    const bytes = Buffer.from("ü\n");
    expect(await lines(bytes.subarray(0, 1), bytes.subarray(1))).toEqual(["ü"]);
  });
});

describe("parseWatchEvent", () => {
  const metadata = { name: "x", resourceVersion: "7" };
  it.each([
    ["ADDED", "upsert"],
    ["MODIFIED", "upsert"],
    ["DELETED", "delete"],
  ])("reads %s", (type, want) => {
    expect(parseWatchEvent(JSON.stringify({ type, object: { metadata } })).type).toBe(want);
  });

  it("reads a bookmark", () => {
    const line = JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "9" } } });
    expect(parseWatchEvent(line)).toEqual({ type: "bookmark", resourceVersion: "9" });
  });

  it("reads an error", () => {
    const line = JSON.stringify({ type: "ERROR", object: { code: 410 } });
    expect(parseWatchEvent(line)).toEqual({ type: "error", status: { code: 410 } });
  });

  it.each([
    ["no JSON", "{"],
    ["no object", '{"type":"ADDED"}'],
    ["null", "null"],
    ["no resourceVersion", '{"type":"ADDED","object":{"metadata":{"name":"x"}}}'],
    ["no name", '{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}'],
    ["an unknown type", '{"type":"WHAT","object":{"metadata":{"name":"x","resourceVersion":"1"}}}'],
  ])("calls %s unparsable", (_name, line) => {
    expect(parseWatchEvent(line).type).toBe("unparsable");
  });
});

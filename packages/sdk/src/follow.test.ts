import { describe, expect, it } from "vitest";
import { createSlipway } from "./client.ts";
import { readEvents } from "./events.ts";
import { followBuild, followLogs } from "./follow.ts";
import { eachItem } from "./pages.ts";

const streamOf = (...chunks: string[]) =>
  ReadableStream.from(chunks.map((chunk) => new TextEncoder().encode(chunk)));

/** A client whose streams are these, one after the other; the ids that it resumed after. */
function following(...streams: string[][]) {
  const resumed: (string | null)[] = [];
  const slipway = createSlipway({
    url: "https://api.example.com",
    retries: { attempts: 1 },
    fetch: async ({ headers }) => {
      resumed.push(headers.get("last-event-id"));
      const headersOfStream = { "content-type": "text/event-stream" };
      return new Response(streamOf(...(streams.shift() ?? [])), { headers: headersOfStream });
    },
  });
  return { slipway, resumed };
}
const log = (id: number, message: string) =>
  `id: ${id}\nevent: log\ndata: ${JSON.stringify({ instance: "shop-1", timestamp: "2026-11-21T12:00:00Z", message })}\n\n`;

describe("server-sent events", () => {
  it("are read whatever pieces they come in, without comments", async () => {
    const text = ": still here\n\nid: 1\nevent: log\ndata: héllo\ndata: world\n\ndata:second\r\n\r\n";
    const bytes = new TextEncoder().encode(text);
    const pieces = ReadableStream.from([...bytes].map((byte) => Uint8Array.of(byte)));
    const events: unknown[] = [];
    for await (const event of readEvents(pieces)) {
      events.push(event);
    }
    expect(events).toEqual([
      { event: "log", id: "1", data: "héllo\nworld" },
      { event: "message", id: "1", data: "second" },
    ]);
  });

  it("have lines of a bounded length", async () => {
    const endless = streamOf("data: ", "x".repeat(2 * 1024 * 1024));
    await expect(readEvents(endless).next()).rejects.toThrow(RangeError);
  });
});

describe("following", () => {
  it("resumes after the last line, up to the end", async () => {
    const { slipway, resumed } = following([log(7, "one")], [log(8, "two"), "event: end\ndata: {}\n\n"]);
    const lines: string[] = [];
    for await (const { message } of followLogs(slipway, "pshop")) {
      lines.push(message);
    }
    expect(lines).toEqual(["one", "two"]);
    expect(resumed).toEqual([null, "7"]);
  });

  it("returns how a build has ended", async () => {
    const { slipway } = following(['event: end\ndata: {"status":"failed"}\n\n']);
    expect(await followBuild(slipway, "pshop", "b1").next()).toEqual({ done: true, value: "failed" });
  });

  it("throws once a stream was resumed without an event as often as it may be", async () => {
    const { slipway, resumed } = following();
    await expect(followLogs(slipway, "pshop", { resumptions: 1 }).next()).rejects.toThrow("before its end");
    expect(resumed).toHaveLength(2);
  });
});

describe("pages", () => {
  it("are read one at a time, to the last", async () => {
    const read: number[] = [];
    const items = eachItem(async (page) => {
      read.push(page);
      return { items: page === 1 ? ["a", "b"] : ["c"], total: 3 };
    });
    expect(await items.next()).toMatchObject({ value: "a" });
    expect(read).toEqual([1]);
    expect([(await items.next()).value, (await items.next()).value]).toEqual(["b", "c"]);
    expect(await items.next()).toMatchObject({ done: true });
    expect(read).toEqual([1, 2]);
  });

  it("end with an empty one, whatever the total is", async () => {
    const items = eachItem(async (page) => ({ items: page === 1 ? ["a"] : [], total: 100 }));
    expect([(await items.next()).value, (await items.next()).done]).toEqual(["a", true]);
  });
});

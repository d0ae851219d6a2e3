import { describe, expect, it } from "vitest";
import { EventStreams } from "../../http/event-streams.ts";
import { buildLogEvents, type LogFeed } from "./reads.ts";

const building: LogFeed = {
  build: async () => ({ status: "building", log_truncated: false }),
  lines: async () => [],
};
const read = async (feed: LogFeed, streams = new EventStreams()): Promise<string> => {
  let text = "";
  for await (const part of streams.open(
    { organizationId: "acme", recheck: async () => undefined },
    buildLogEvents(feed, 0, 1),
  )) {
    text += String(part);
  }
  return text;
};

describe("a build's log as events", () => {
  it("ends with the process, without saying that the build has", async () => {
    const streams = new EventStreams({ heartbeatMs: 1 });
    const text = read(building, streams);
    setImmediate(() => void streams.endAll());
    expect(await text).not.toContain("event: end");
  });

  it("ends without the event end when the ledger is unavailable, so that the client resumes", async () => {
    expect(await read({ ...building, lines: () => Promise.reject(new Error("away")) })).toBe(": log\n\n");
  });

  it("ends when the build is deleted", async () => {
    expect(await read({ ...building, build: async () => undefined })).toBe(": log\n\n");
  });
});

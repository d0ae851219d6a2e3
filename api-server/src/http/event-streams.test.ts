import { describe, expect, it } from "vitest";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { type EventSource, EventStreams } from "./event-streams.ts";

/** Says nothing, until it is ended. */
const silent: EventSource = async function* silent(signal) {
  yield ": open\n\n";
  await new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (signal.aborted) {
      resolve();
    }
  });
};
const endless: EventSource = async function* endless(signal) {
  while (!signal.aborted) {
    yield "x".repeat(8_192);
  }
};
const read = async (stream: AsyncIterable<unknown>): Promise<string> => {
  let text = "";
  for await (const part of stream) {
    text += String(part);
  }
  return text;
};
const caller = (organizationId: string, recheck = () => Promise.resolve()) => ({ organizationId, recheck });
const busy = expect.objectContaining({ status: 503, code: "SERVER_BUSY" });

describe("the streams of a process", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/logs` with `follow=true`, as
  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id/builds/:buildId/logs` | lines
  it("are bounded, and those of one organization", async () => {
    const streams = new EventStreams({ maxStreams: 2, maxStreamsPerOrganization: 1 });
    const first = streams.open(caller("acme"), silent);
    expect(() => streams.open(caller("acme"), silent)).toThrow(busy);
    const second = streams.open(caller("umbrella"), silent);
    expect(() => streams.open(caller("third"), silent)).toThrow(busy);
    first.destroy();
    await eventually("a place", () => streams.size === 1);
    streams.open(caller("third"), silent).destroy();
    second.destroy();
  });

  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/logs` with `follow=true`, as
  it("of the organization with most give way to one with fewer, the oldest first", async () => {
    const streams = new EventStreams({ maxStreams: 4, maxStreamsPerOrganization: 3 });
    const [oldest, ...others] = ["acme", "acme", "acme", "umbrella"].map((organization) => {
      const stream = streams.open(caller(organization), silent);
      return { stream, text: read(stream) };
    });
    const newest = streams.open(caller("third"), silent);
    expect(await oldest?.text).toBe(": open\n\n");
    expect(others.map(({ stream }) => stream.destroyed)).toEqual([false, false, false]);
    await eventually("its place", () => streams.size === 4);
    newest.destroy();
    await streams.endAll();
  });

  it("stay bounded while those that give way have not ended yet", async () => {
    const streams = new EventStreams({ maxStreams: 4, maxStreamsPerOrganization: 4, graceMs: 50 });
    // No client reads these, so that they exist until their grace period ends.
    for (let index = 0; index < 4; index += 1) {
      streams.open(caller("acme"), silent);
    }
    for (const organization of ["b", "c", "d"]) {
      streams.open(caller(organization), silent);
    }
    expect(() => streams.open(caller("e"), silent)).toThrow(busy);
    await streams.endAll();
  });

  it("end soon after their caller may read no more, also for clients that do not read", async () => {
    const streams = new EventStreams({ recheckMs: 10, graceMs: 10 });
    let mayRead = true;
    const recheck = () => (mayRead ? Promise.resolve() : Promise.reject(new Error("revoked")));
    const text = read(streams.open(caller("acme", recheck), silent));
    streams.open(caller("acme", recheck), endless).once("readable", () => undefined);
    const others = streams.open(caller("umbrella"), silent);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(streams.size).toBe(3);
    mayRead = false;
    expect(await text).toMatch(/^: open/);
    await eventually("both to be gone", () => streams.size === 1);
    others.destroy();
  });

  it("say from time to time that they are still there", async () => {
    const streams = new EventStreams({ heartbeatMs: 1 });
    const stream = streams.open(caller("acme"), silent);
    let text = "";
    for await (const part of stream) {
      text += String(part);
      if (text.split(": still here\n\n").length > 3) {
        break;
      }
    }
    expect(text).toMatch(/^: open\n\n(: still here\n\n){3}/);
    await eventually("the place", () => streams.size === 0);
  });

  it("end with the process, and there are no new ones", async () => {
    const streams = new EventStreams();
    const text = read(streams.open(caller("acme"), silent));
    setImmediate(() => void streams.endAll());
    expect(await text).toBe(": open\n\n");
    expect(() => streams.open(caller("acme"), silent)).toThrow(busy);
  });

  it("are cut off at the end where the client does not read", async () => {
    const streams = new EventStreams({ graceMs: 1 });
    const unread = streams.open(caller("acme"), endless);
    unread.once("readable", () => undefined);
    await streams.endAll();
    expect(unread.destroyed).toBe(true);
    await eventually("the stream to be gone", () => streams.size === 0);
  });

  it("end after their time, also for clients that do not read", async () => {
    const streams = new EventStreams({ maxDurationMs: 20, graceMs: 20 });
    expect(await read(streams.open(caller("acme"), silent))).toBe(": open\n\n");
    const unread = streams.open(caller("acme"), endless);
    unread.once("readable", () => undefined);
    await eventually("the stream to be gone", () => streams.size === 0);
    expect(unread.destroyed).toBe(true);
  });

  it("end when their source fails, and end their source when the client goes", async () => {
    const streams = new EventStreams();
    const failing: EventSource = async function* failing() {
      yield ": open\n\n";
      throw new Error("away");
    };
    expect(await read(streams.open(caller("acme"), failing))).toBe(": open\n\n");
    let ended = false;
    const watched: EventSource = async function* watched(signal) {
      try {
        yield* silent(signal);
      } finally {
        ended = true;
      }
    };
    const stream = streams.open(caller("acme"), watched);
    for await (const _ of stream) {
      break;
    }
    await eventually("the source to end", () => ended);
  });

  it("make no more than is read", async () => {
    let chunks = 0;
    const counted: EventSource = async function* counted(signal) {
      for await (const part of endless(signal)) {
        chunks += 1;
        yield part;
      }
    };
    const streams = new EventStreams();
    const unread = streams.open(caller("acme"), counted);
    unread.once("readable", () => undefined);
    await eventually("the first", () => chunks > 0);
    for (let turn = 0; turn < 50; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(chunks).toBeLessThan(16);
    unread.destroy();
  });
});

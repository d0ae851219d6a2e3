import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { exampleBody, type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";

/** Bodies over real sockets: an organization has its share of the memory for them, and none keeps it longer than it must. */

let harness: FakeHarness;
let port: number;
let headers: Record<string, string>;

beforeAll(async () => {
  harness = await startFakeHarness();
  await harness.app.listen({ port: 0, host: "127.0.0.1" });
  port = (harness.app.server.address() as { port: number }).port;
  headers = harness.key("acme", "* on organization:*");
});
afterAll(() => harness.close());

const MIB = 1024 * 1024;
/** A quarter of what one organization may have under way. */
const large = JSON.stringify({ name: "x".repeat(3 * MIB - 11) });
const LENGTH = `Content-Length: ${large.length}`;
const CHUNKED = "Transfer-Encoding: chunked";

const opened: Socket[] = [];
afterEach(() => end(opened.splice(0)));

/** Announces a large body, and sends the beginning of it alone. */
async function begin(how = LENGTH): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  const key = `x-api-key: ${headers["x-api-key"]}`;
  const seen = once(harness.app.server, "request");
  const start = how === CHUNKED ? "1\r\n{\r\n" : "{";
  socket.write(
    `POST /v1/project HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${key}\r\n${how}\r\n\r\n${start}`,
  );
  await seen;
  opened.push(socket);
  return socket;
}
async function beginMany(count: number, how?: string): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    sockets.push(await begin(how));
  }
  return sockets;
}
const send = async (body: string, as = headers) => {
  const response = await fetch(`http://127.0.0.1:${port}/v1/project`, {
    method: "POST",
    headers: { ...as, "content-type": "application/json" },
    body,
  });
  const { code } = (await response.json()) as { code: string };
  return { status: response.status, code, retryAfter: response.headers.get("retry-after") };
};
const end = async (sockets: Socket[]) => {
  for (const socket of sockets) {
    socket.destroy();
  }
  await Promise.all(sockets.map((socket) => (socket.closed ? undefined : once(socket, "close"))));
};
const answered = { status: 400, code: "VALIDATION_FAILED", retryAfter: null };
const busy = { status: 503, code: "SERVER_BUSY", retryAfter: "2" };

// Shows: docs/applications.md#errors-every-operation: 503 | `SERVER_BUSY`, with `Retry-After`: an
it.each<[string, number]>([
  [LENGTH, 4],
  [CHUNKED, 1],
])(
  "waits for its organization's budget, is refused when none is free in time, and others are not (%s)",
  async (how, fits) => {
    const slow = await beginMany(fits, how);
    expect(await send(large)).toEqual(busy);
    const others = harness.key("umbrella", "* on organization:*");
    expect(await send(large, others)).toEqual(answered);
    // Small ones, and those that are refused by their length, need none of it.
    expect((await send(JSON.stringify(exampleBody({ plan: "none" })))).status).toBe(400);
    expect((await send(`"${"x".repeat(13 * MIB)}"`)).status).toBe(413);
    // A client that disconnects releases its bytes for who waits.
    const waiting = send(large);
    await end(slow.slice(0, 1));
    expect(await waiting).toEqual(answered);
    await end(slow);
  },
);

it("leaves its place after every kind of answer, and when its client goes", async () => {
  const bodies = [large, `${large}}`, `{"${"k".repeat(2 * MIB)}":1}`, `[${" ".repeat(2 * MIB)}]`];
  for (let round = 0; round < 3; round += 1) {
    for (const body of bodies) {
      expect((await send(body)).status).toBe(400);
    }
    await end(await beginMany(3));
  }
  expect(await Promise.all(Array.from({ length: 8 }, () => send(large)))).toEqual(Array(8).fill(answered));
});

it("does not begin what was abandoned while it waited", async () => {
  const slow = await beginMany(4);
  expect(await send(large)).toEqual(busy);
  await end(await beginMany(5));
  await end(slow);
  expect(await send(large)).toEqual(answered);
});

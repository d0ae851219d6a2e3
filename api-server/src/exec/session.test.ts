import { once } from "node:events";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { SocketPairs } from "../../../test/kit/api-server/socket-pairs.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { exitCodeIn, isClientMessage } from "./frames.ts";
import { ExecSession, type SessionEnd, type SessionLimits } from "./session.ts";
import { EXEC_LIMITS } from "./sessions.ts";

const MIB = 1024 * 1024;
const pairs = new SocketPairs();
afterEach(() => pairs.closeAll());

const message = (channel: number, text: string | Buffer = "") =>
  Buffer.concat([Buffer.of(channel), Buffer.from(text)]);
const status = (code: number) =>
  message(
    3,
    JSON.stringify({
      status: code === 0 ? "Success" : "Failure",
      details: { causes: [{ reason: "ExitCode", message: String(code) }] },
    }),
  );

interface Setup {
  session: ExecSession;
  /** The user's side of the client's connection, and the node's of the command's. */
  user: WebSocket;
  node: WebSocket;
  client: WebSocket;
  upstream: WebSocket;
  received: Buffer[];
  end: Promise<SessionEnd>;
  closed: Promise<string>;
  /** Passes so many milliseconds, and checks. */
  pass: (ms: number) => void;
}

/** How many messages a connection had that it had not taken, at most. */
function unsentOf(socket: WebSocket): { most: number } {
  const counts = { most: 0 };
  let unsent = 0;
  const send = socket.send.bind(socket) as (data: Buffer, options: object, then: () => void) => void;
  const counted: typeof send = (data, options, then) => {
    unsent += 1;
    counts.most = Math.max(counts.most, unsent);
    send(data, options, () => {
      unsent -= 1;
      then();
    });
  };
  socket.send = counted as typeof socket.send;
  return counts;
}

async function start(
  limits: Partial<SessionLimits> = {},
  streams = { stdin: true, tty: false },
): Promise<Setup> {
  const [client, user] = await pairs.open();
  const [node, upstream] = await pairs.open();
  upstream.pause();
  const received: Buffer[] = [];
  user.on("message", (data) => received.push(data as Buffer));
  const closed = once(user, "close").then(([code, reason]) => `${code} ${reason}`);
  const end = Promise.withResolvers<SessionEnd>();
  let now = 0;
  const session = new ExecSession({
    client,
    upstream,
    streams,
    limits: { ...EXEC_LIMITS, graceMs: 200, ...limits },
    now: () => now,
    onEnd: end.resolve,
  });
  const pass = (ms: number) => {
    now += ms;
    session.check();
  };
  return { session, user, node, client, upstream, received, end: end.promise, closed, pass };
}

describe("a session", () => {
  // Shows: docs/exec.md#protocol: 3 | the status of the command
  // Shows: docs/exec.md#protocol: 255 | the client sends
  // Shows: docs/exec.md#ends: 1000 | `EXEC_EXITED`
  it("passes messages as they are, in order, and ends with the command's status", async () => {
    const { user, node, received, end, closed } = await start();
    const input: Buffer[] = [];
    node.on("message", (data) => {
      input.push(data as Buffer);
      if ((data as Buffer)[0] === 255) {
        node.send(message(1, "out"));
        node.send(message(2, "error"));
        node.send(status(7));
        node.close();
      }
    });
    user.send(message(0, Buffer.of(0, 255, 10)));
    user.send(Buffer.of(255, 0));
    expect(await closed).toBe("1000 EXEC_EXITED");
    expect(input).toEqual([message(0, Buffer.of(0, 255, 10)), Buffer.of(255, 0)]);
    expect(received).toEqual([message(1, "out"), message(2, "error"), status(7)]);
    expect(await end).toEqual({
      code: "EXEC_EXITED",
      exitCode: 7,
      stdinBytes: 3,
      stdoutBytes: 3,
      stderrBytes: 5,
    });
  });

  it("loses nothing of what a slow client has not taken when the command ends", async () => {
    const { user, node, upstream, received, closed } = await start({ maxBuffered: 64 * 1024 });
    user.pause();
    const total = 24 * MIB;
    let sent = 0;
    for (; sent < total; sent += 32 * 1024) {
      node.send(message(1, Buffer.alloc(32 * 1024, sent % 251)));
    }
    node.send(status(0));
    node.close();
    await eventually("the command's side to be paused", () => upstream.isPaused);
    user.resume();
    expect(await closed).toBe("1000 EXEC_EXITED");
    const output = received.filter(([channel]) => channel === 1);
    expect(output.reduce((sum, { length }) => sum + length - 1, 0)).toBe(total);
    expect(output.every((chunk, at) => chunk[1] === (at * 32 * 1024) % 251)).toBe(true);
    expect(received.at(-1)).toEqual(status(0));
  });

  // Shows: docs/exec.md#bounds: a client that does not read
  it("buffers little of what its client does not read, and of what its command does not", async () => {
    const maxBuffered = 64 * 1024;
    const { user, node, client, upstream } = await start({ maxBuffered });
    user.pause();
    node.pause();
    for (let count = 0; count < 512; count += 1) {
      node.send(message(1, Buffer.alloc(32 * 1024)));
      user.send(message(0, Buffer.alloc(32 * 1024)));
    }
    await eventually("both to be paused", () => client.isPaused && upstream.isPaused);
    // One message each may exceed the bound, and what one read of the connection has of others.
    expect(client.bufferedAmount).toBeLessThan(maxBuffered + 160 * 1024);
    expect(upstream.bufferedAmount).toBeLessThan(maxBuffered + 160 * 1024);
  });

  // Shows: docs/exec.md#bounds: a client that does not read
  it("gives its connections few tiny messages while those take none, and passes all of them in the end", async () => {
    const { user, node, client, upstream, received } = await start({ maxBuffered: 64 * 1024 });
    const input: Buffer[] = [];
    node.on("message", (data) => input.push(data as Buffer));
    const [toClient, toUpstream] = [unsentOf(client), unsentOf(upstream)];
    // Connections that take nothing.
    const stalled = [client, upstream].map((socket) => (socket as unknown as { _socket: Socket })._socket);
    for (const socket of stalled) {
      socket.cork();
    }
    const count = 20_000;
    const numbered = (channel: number, at: number) => message(channel, Buffer.of(at % 251));
    for (let at = 0; at < count; at += 1) {
      node.send(numbered(1, at));
      user.send(numbered(0, at));
    }
    await eventually("both to be paused", () => client.isPaused && upstream.isPaused);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(Math.max(toClient.most, toUpstream.most)).toBeLessThanOrEqual(65);
    for (const socket of stalled) {
      socket.uncork();
    }
    await eventually("all to be passed", () => received.length === count && input.length === count, 60_000);
    expect(received.every((chunk, at) => chunk.equals(numbered(1, at)))).toBe(true);
    expect(input.every((chunk, at) => chunk.equals(numbered(0, at)))).toBe(true);
    expect(Math.max(toClient.most, toUpstream.most)).toBeLessThanOrEqual(65);
  });

  // Shows: docs/exec.md#bounds: messages of a session
  it("passes one message in a turn of the event loop, however many one read has", async () => {
    const { user, client } = await start();
    const turns = new Set<number>();
    let turn = 0;
    const next = () => {
      turn += 1;
      counting = setImmediate(next);
    };
    let counting = setImmediate(next);
    const seen = Promise.withResolvers<void>();
    let passed = 0;
    client.on("message", () => {
      turns.add(turn);
      passed += 1;
      if (passed === 1_000) {
        seen.resolve();
      }
    });
    for (let at = 0; at < 1_000; at += 1) {
      user.send(message(0, "x"));
    }
    await seen.promise;
    clearImmediate(counting);
    expect(turns.size).toBeGreaterThan(900);
  });

  it("passes nothing once the platform has ended it, and disconnects a client that does not close", async () => {
    const { session, user, node, client, received, end } = await start();
    user.pause();
    const lost = once(node, "close");
    session.end("EXEC_ACCESS_REVOKED");
    node.send(message(1, "late"));
    await lost;
    expect((await end).code).toBe("EXEC_ACCESS_REVOKED");
    expect(client.readyState).toBe(WebSocket.CLOSED);
    expect(received).toEqual([]);
  });

  // Shows: docs/exec.md#bounds: time of a session
  // Shows: docs/exec.md#ends: 4408 | `EXEC_IDLE`
  // Shows: docs/exec.md#ends: 4409 | `EXEC_TIME_LIMIT`
  // Shows: docs/exec.md#ends: 4410 | `EXEC_CLIENT_STALLED`
  it.each([
    ["EXEC_IDLE", 4408, { idleMs: 1_000 }],
    ["EXEC_TIME_LIMIT", 4409, { maxDurationMs: 1_000 }],
    ["EXEC_CLIENT_STALLED", 4410, { stalledMs: 1_000 }],
  ])("ends with %s when its time is over", async (code, closeCode, limits) => {
    const { pass, closed } = await start(limits);
    pass(999);
    pass(2);
    expect(await closed).toBe(`${closeCode} ${code}`);
  });

  it("is kept by answers to pings alone, up to the idle time", async () => {
    const { pass, user, node, closed } = await start({ stalledMs: 30_000, pingMs: 10_000, idleMs: 100_000 });
    for (let passed = 0; passed < 90_000; passed += 15_000) {
      const pings = Promise.all([once(user, "ping"), once(node, "ping")]);
      pass(15_000);
      await pings;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    pass(15_000);
    expect(await closed).toBe("4408 EXEC_IDLE");
  });

  // Shows: docs/exec.md#ends: 1011 | `EXEC_INSTANCE_LOST`
  it("ends with EXEC_INSTANCE_LOST when the command's connection breaks", async () => {
    const { node, closed } = await start();
    node.terminate();
    expect(await closed).toBe("1011 EXEC_INSTANCE_LOST");
  });

  it("closes the command's connection after its client has closed, with the input that was sent", async () => {
    const { user, node, end } = await start();
    const input: string[] = [];
    node.on("message", (data) => input.push((data as Buffer).subarray(1).toString()));
    const closed = once(node, "close");
    user.send(message(0, "last words"));
    user.close();
    await closed;
    expect(input).toEqual(["last words"]);
    expect((await end).code).toBe("EXEC_CLIENT_CLOSED");
  });

  // Shows: docs/exec.md#ends: 1008 | `EXEC_PROTOCOL_ERROR`
  it.each([
    ["a text message", "text"],
    ["an empty message", Buffer.alloc(0)],
    ["an output", message(1, "x")],
    ["a size without a terminal", message(4, '{"Width":80,"Height":24}')],
  ])("refuses %s", async (_name, sent) => {
    const { user, node, closed } = await start();
    const seen: unknown[] = [];
    node.on("message", (data) => seen.push(data));
    user.send(sent);
    expect(await closed).toBe("1008 EXEC_PROTOCOL_ERROR");
    expect(seen).toEqual([]);
  });
});

describe("isClientMessage", () => {
  const terminal = { stdin: true, tty: true };
  it.each([
    ['{"Width":80,"Height":24}', true],
    ['{"Width":80,"Height":0}', false],
    ['{"Width":80,"Height":24.5}', false],
    ['{"Width":80,"Height":70000}', false],
    ['{"Width":80}', false],
    ["[80,24]", false],
    ["null", false],
    ["{", false],
    [`{"Width":80,"Height":24,"x":"${"y".repeat(200)}"}`, false],
  ])("size %s: %s", (json, isAllowed) => {
    expect(isClientMessage(message(4, json), terminal)).toBe(isAllowed);
  });

  it("allows an input, and its end, only where there is an input", () => {
    for (const stdin of [true, false]) {
      expect(isClientMessage(message(0, "x"), { stdin, tty: false })).toBe(stdin);
      expect(isClientMessage(Buffer.of(255, 0), { stdin, tty: false })).toBe(stdin);
    }
    expect(isClientMessage(Buffer.of(255, 1), terminal)).toBe(false);
    expect(isClientMessage(Buffer.of(255, 0, 0), terminal)).toBe(false);
    expect(isClientMessage(message(3, "{}"), terminal)).toBe(false);
  });
});

describe("exitCodeIn", () => {
  it.each([
    ['{"status":"Success"}', 0],
    ['{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"137"}]}}', 137],
    ['{"status":"Failure","reason":"InternalError"}', undefined],
    ['{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"x"}]}}', undefined],
    ["null", undefined],
    ["not JSON", undefined],
  ])("of %s is %s", (json, code) => {
    expect(exitCodeIn(Buffer.from(json))).toBe(code);
  });
});

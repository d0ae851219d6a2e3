import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";

/** What no HTTP library would send, over real sockets: each gets a 4xx in the envelope, and the server lives. */

const TIMEOUTS = { headersMs: 30_000, requestMs: 30_000, checkMs: 50, stalledResponseMs: 30_000 };
const SHORT_TIMEOUTS = { ...TIMEOUTS, headersMs: 400, requestMs: 800 };

let harness: FakeHarness;
let port: number;
let key: string;

async function start(timeouts: typeof TIMEOUTS): Promise<void> {
  harness = await startFakeHarness({ timeouts });
  await harness.app.listen({ port: 0, host: "127.0.0.1" });
  port = (harness.app.server.address() as { port: number }).port;
  key = harness.key("acme", "* on organization:*", "* on project:*")["x-api-key"] ?? "";
}

// A busy machine needs long for a large body.
beforeAll(() => start(TIMEOUTS));
afterAll(() => harness.close());

async function open(): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  // Bytes that are still on their way when the server hangs up come back as a reset.
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** All that the server says until it hangs up. */
async function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await new Promise((resolve) => socket.once("close", resolve));
  return Buffer.concat(chunks).toString("latin1");
}

async function exchange(bytes: string | Buffer): Promise<string> {
  const socket = await open();
  const answer = readAll(socket);
  socket.write(bytes);
  return answer;
}

function expectRefusal(answer: string, status: number, code: string): void {
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  expect(head.toLowerCase()).toContain("content-type: application/json");
  expect(JSON.parse(body)).toMatchObject({ status: "failed", code });
}

async function expectAlive(): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/project/plans`);
  expect(response.status).toBe(200);
  await response.arrayBuffer();
}

const HEAD = "Host: a\r\nConnection: close\r\n";
const POST = `POST /v1/project HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\n`;

// Shows: docs/applications.md#errors-every-operation: 400 | `MALFORMED_REQUEST`: invalid paths, and
describe("bytes that are no request", () => {
  it.each<[string, string]>([
    ["no HTTP", "NONSENSE\r\n\r\n"],
    ["a TLS greeting", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"],
    ["a method that nobody knows", `BREW /v1/project HTTP/1.1\r\n${HEAD}\r\n`],
    ["another version", `GET /v1/project HTTP/3.7\r\n${HEAD}\r\n`],
    ["no Host", "GET /v1/project/plans HTTP/1.1\r\nConnection: close\r\n\r\n"],
    ["NUL in the path", `GET /v1/project/a\x00b HTTP/1.1\r\n${HEAD}\r\n`],
    ["a space in the path", `GET /v1/project/a b HTTP/1.1\r\n${HEAD}\r\n`],
    ["NUL in a header's value", `GET /v1/project HTTP/1.1\r\n${HEAD}x-api-key: a\x00b\r\n\r\n`],
    ["NUL in a header's name", `GET /v1/project HTTP/1.1\r\n${HEAD}x-\x00: a\r\n\r\n`],
    ["a header of two lines", `GET /v1/project HTTP/1.1\r\n${HEAD}x-a: b\r\n c\r\n\r\n`],
    ["a space before the colon", `GET /v1/project HTTP/1.1\r\n${HEAD}x-a : b\r\n\r\n`],
    ["two lengths", `${POST}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`],
    ["length and chunks", `${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["a length below zero", `${POST}Content-Length: -1\r\n\r\n{}`],
    ["a length that is no number", `${POST}Content-Length: 0x2\r\n\r\n{}`],
    ["an unknown transfer encoding", `${POST}Transfer-Encoding: gzip, chunky\r\n\r\n{}`],
    ["a broken chunk", `${POST}Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n`],
  ])("%s", async (_about, bytes) => {
    const answer = await exchange(Buffer.from(bytes, "latin1"));
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
    // The last answer: a broken body comes after the headers were answered with a 401.
    const body = answer.slice(answer.lastIndexOf("\r\n\r\n") + 4);
    expect(JSON.parse(body)).toMatchObject({ status: "failed" });
    await expectAlive();
  });
});

describe("headers", () => {
  // Shows: docs/applications.md#errors-every-operation: 431 | `HEADERS_TOO_LARGE`
  it("that are too large answer 431", async () => {
    expectRefusal(
      await exchange(`GET /v1/project HTTP/1.1\r\n${HEAD}x-a: ${"a".repeat(20_000)}\r\n\r\n`),
      431,
      "HEADERS_TOO_LARGE",
    );
    expectRefusal(
      await exchange(`GET /${"a".repeat(20_000)} HTTP/1.1\r\n${HEAD}\r\n`),
      431,
      "HEADERS_TOO_LARGE",
    );
    await expectAlive();
  });

  // Shows: docs/applications.md#errors-every-operation: 431 | `HEADERS_TOO_LARGE`
  it("that are very many answer 431", async () => {
    const many = Array.from({ length: 5_000 }, (_, index) => `x-${index}: a\r\n`).join("");
    expectRefusal(await exchange(`GET /v1/project HTTP/1.1\r\n${HEAD}${many}\r\n`), 431, "HEADERS_TOO_LARGE");
    await expectAlive();
  });

  it("that come twice do not make two credentials", async () => {
    const twice = `x-api-key: ${key}\r\nx-api-key: ${key}\r\n`;
    expectRefusal(
      await exchange(`GET /v1/project HTTP/1.1\r\n${HEAD}${twice}\r\n`),
      401,
      "CREDENTIAL_INVALID",
    );
    await expectAlive();
  });
});

describe("a body over the limit", () => {
  it.each(["Content-Length: 20000000\r\n", "Transfer-Encoding: chunked\r\n"])(
    "is answered, and its connection stays open for a client that sends it to the end (%j)",
    async (how) => {
      const socket = await open();
      const answer = readAll(socket);
      const chunked = how.startsWith("Transfer");
      socket.write(
        `POST /v1/project HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nx-api-key: ${key}\r\n${how}\r\n`,
      );
      const part = Buffer.alloc(1_000_000, "x");
      for (let count = 0; count < 20; count += 1) {
        if (chunked) {
          socket.write("F4240\r\n");
        }
        const room = socket.write(part);
        if (chunked) {
          socket.write("\r\n");
        }
        if (!room) {
          await once(socket, "drain", { signal: AbortSignal.timeout(5_000) });
        }
      }
      if (chunked) {
        socket.write("0\r\n\r\n");
      }
      socket.write(`GET /v1/project/plans HTTP/1.1\r\n${HEAD}\r\n`);
      const statuses = [...(await answer).matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);
      expect(statuses).toEqual(["413", "200"]);
    },
  );

  it("is answered before the connection ends, for a client that requests its close", async () => {
    const body = Buffer.alloc(13_000_000, "x");
    for (let count = 0; count < 5; count += 1) {
      const head = Buffer.from(`${POST}x-api-key: ${key}\r\nContent-Length: ${body.length}\r\n\r\n`);
      expectRefusal(await exchange(Buffer.concat([head, body])), 413, "BODY_TOO_LARGE");
    }
  });
});

describe("slow clients", () => {
  let restore: () => void;
  beforeAll(async () => {
    const before = { harness, port, key };
    restore = () => ({ harness, port, key } = before);
    await start(SHORT_TIMEOUTS);
  });
  afterAll(async () => {
    await harness.close();
    restore();
  });

  // Shows: docs/applications.md#errors-every-operation: 408 | `REQUEST_TIMEOUT`: slow clients
  // Shows: docs/authentication.md#clients-that-misbehave: slow headers, slow bodies, answers that nobody
  it("that drip their headers are cut off with 408", async () => {
    const socket = await open();
    const answer = readAll(socket);
    const started = performance.now();
    socket.write(`GET /v1/project/plans HTTP/1.1\r\n`);
    const drip = setInterval(() => socket.write("x-a: b\r\n"), 20);
    expectRefusal(await answer, 408, "REQUEST_TIMEOUT");
    clearInterval(drip);
    expect(performance.now() - started).toBeLessThan(3_000);
    await expectAlive();
  });

  // Shows: docs/applications.md#errors-every-operation: 408 | `REQUEST_TIMEOUT`: slow clients
  it("that drip their body are cut off with 408", async () => {
    const socket = await open();
    const answer = readAll(socket);
    socket.write(`${POST}x-api-key: ${key}\r\nContent-Length: 1000000\r\n\r\n{`);
    const drip = setInterval(() => socket.write(" "), 20);
    expectRefusal(await answer, 408, "REQUEST_TIMEOUT");
    clearInterval(drip);
    await expectAlive();
  });

  it("do not keep others waiting, however many", async () => {
    const sockets = await Promise.all(Array.from({ length: 200 }, open));
    for (const socket of sockets) {
      socket.write("GET /v1/project/plans HTTP/1.1\r\nHost:");
    }
    for (let count = 0; count < 20; count += 1) {
      const started = performance.now();
      await expectAlive();
      expect(performance.now() - started).toBeLessThan(500);
    }
    await Promise.all(sockets.map((socket) => (socket.closed ? undefined : readAll(socket))));
    await expectAlive();
  });

  it("that hang up in the middle of a body leave nothing behind", async () => {
    for (let count = 0; count < 20; count += 1) {
      const socket = await open();
      socket.write(`${POST}x-api-key: ${key}\r\nContent-Length: 100\r\n\r\n{"name"`);
      await sleep(2);
      socket.destroy();
    }
    await sleep(100);
    const connections = await new Promise<number>((resolve, reject) =>
      harness.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
    expect(connections).toBeLessThan(10);
    await expectAlive();
  });
});

describe("requests one behind another on one connection", () => {
  it("are all answered, in order", async () => {
    const request = (path: string, last = false) =>
      `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: ${last ? "close" : "keep-alive"}\r\n\r\n`;
    const paths = Array.from({ length: 50 }, (_, index) =>
      index % 2 === 0 ? "/v1/project/plans" : "/nowhere",
    );
    const answer = await exchange(paths.map((path) => request(path)).join("") + request("/v1/project", true));
    const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);
    expect(statuses).toEqual([...paths.map((path) => (path === "/nowhere" ? "404" : "200")), "401"]);
  });

  it("do not come of a body that was not read", async () => {
    // Refused before its body was read: the bytes of the body are no second request.
    const smuggled = "GET /v1/project/plans HTTP/1.1\r\nHost: a\r\n\r\n";
    const answer = await exchange(`${POST}Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`);
    expect([...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)).toEqual(["401"]);
    await expectAlive();
  });

  it("do not wait for Expect", async () => {
    const answer = await exchange(`${POST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`);
    expect(answer).toMatch(/HTTP\/1\.1 401 /);
    const strange = await exchange(`${POST}Expect: a-miracle\r\nContent-Length: 2\r\n\r\n{}`);
    expectRefusal(strange, 401, "CREDENTIAL_MISSING");
    await expectAlive();
  });
});

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { putConnection } from "../../../test/kit/api-server/git.ts";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";

/** Clients that announce a body, send all of it but its last byte, and then nothing. */

const MIB = 1024 * 1024;
const CLIENTS = 64;
/** One for all: only what the server keeps is counted. */
const almost = Buffer.alloc(MIB - 2, "x");

let harness: FakeHarness;
let port: number;
beforeAll(async () => {
  harness = await startFakeHarness();
  await harness.app.listen({ port: 0, host: "127.0.0.1" });
  port = (harness.app.server.address() as { port: number }).port;
});
afterAll(() => harness.close());

const sockets: Socket[] = [];
afterEach(async () => {
  const open = sockets.splice(0).filter((socket) => !socket.closed);
  for (const socket of open) {
    socket.destroy();
  }
  await Promise.all(open.map((socket) => once(socket, "close")));
});

/** Begins a request; resolves with the status once it is answered. */
async function stall(path: string, headers: Record<string, string>): Promise<number> {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => {});
  await once(socket, "connect");
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${lines.join("")}`);
  socket.write(`Content-Length: ${MIB - 1}\r\n\r\n`);
  socket.write(almost);
  const [answer] = (await once(socket, "data")) as [Buffer];
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer.toString("latin1"))?.[1]);
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** MiB of buffers that something refers to. */
function mebibytesKept(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers / MIB;
}

/**
 * The statuses of those who are answered; `stalled` of them are not, because the server waits for their last bytes.
 * @param most MiB that the server keeps of all together
 */
async function stallMany(
  path: string,
  { stalled, most }: { stalled: number; most: number },
  headersOf: () => Record<string, string>,
): Promise<number[]> {
  const before = mebibytesKept();
  const statuses: number[] = [];
  for (let client = 0; client < CLIENTS; client += 1) {
    stall(path, headersOf()).then(
      (status) => statuses.push(status),
      () => undefined,
    );
  }
  await eventually("the answers", () => statuses.length >= CLIENTS - stalled);
  await sleep(100);
  expect(statuses).toHaveLength(CLIENTS - stalled);
  // Freed buffers are counted until V8 has swept them.
  await expect.poll(() => mebibytesKept() - before, { timeout: 5_000 }).toBeLessThan(most);
  return [...new Set(statuses)];
}

// Shows: docs/authentication.md#clients-that-misbehave: bodies for routes that do not exist, without a
it.each<[string, string, () => Record<string, string>, number]>([
  ["to a path that nobody serves", "/nope", () => ({}), 404],
  ["without a credential", "/v1/project", () => ({}), 401],
  [
    "with a wrong key",
    "/v1/project",
    () => ({ "x-api-key": `slw_${"0".repeat(16)}_${"0".repeat(64)}` }),
    401,
  ],
  ["with a key that may not", "/v1/project", () => harness.key("acme", "project.read on project:*"), 403],
  ["to another method", "/v1/project/plans", () => ({}), 405],
  ["to the hook of a connection that nobody has", `/v1/git/hooks/g${"a".repeat(19)}`, () => ({}), 401],
])("%s are refused, and nothing of theirs is kept", async (_who, path, headersOf, status) => {
  expect(await stallMany(path, { stalled: 0, most: 16 }, headersOf)).toEqual([status]);
});

// Shows: docs/applications.md#errors-every-operation: 503 | `SERVER_BUSY`, with `Retry-After`: an
it("with a valid key use the share of their organization and no more, and others continue to create", async () => {
  const keys = harness.key("acme", "* on organization:*");
  const others = harness.key("umbrella", "* on organization:*");
  const many = stallMany("/v1/project", { stalled: 12, most: 32 }, () => keys);
  const refused = await fetch(`http://127.0.0.1:${port}/v1/project`, {
    method: "POST",
    headers: { ...others, "content-type": "application/json" },
    body: JSON.stringify({ name: "x".repeat(3 * MIB) }),
  });
  expect(refused.status).toBe(400);
  expect(await many).toEqual([503]);
});

// Shows: docs/authentication.md#clients-that-misbehave: deliveries of hooks | 4 MiB of bodies of the
it("unsigned, as deliveries of hooks, keep the share of the organization that they name", async () => {
  await putConnection(harness.kube, "acme", "gstalled");
  await eventually(
    "the connection",
    () => harness.services.connections.organizationOf("gstalled") === "acme",
  );
  const path = "/v1/git/hooks/gstalled";
  expect(await stallMany(path, { stalled: 4, most: 16 }, () => ({}))).toEqual([503]);
});

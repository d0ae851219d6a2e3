import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { organizationNamespace } from "@slipway/crds";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";

/** Clients that request large answers repeatedly on one connection, and read nothing. */

const CLIENTS = 40;
const ASKED = 20;
/** Calls of one organization that are worked at. */
const AT_WORK = 6;
const MIB = 1024 * 1024;
const large = Buffer.alloc(900_000, "v").toString("base64");

let harness: FakeHarness;
let port: number;
beforeAll(async () => {
  const timeouts = { headersMs: 1_500, requestMs: 30_000, checkMs: 50, stalledResponseMs: 1_000 };
  harness = await startFakeHarness({ timeouts });
  await harness.app.listen({ port: 0, host: "127.0.0.1" });
  port = (harness.app.server.address() as { port: number }).port;
  for (const organization of ["acme", "wayne", "umbrella", "initech", "hooli", "soylent"]) {
    const namespace = organizationNamespace(organization);
    for (const name of ["one", "two"]) {
      const secret = { metadata: { name, namespace }, data: { [`OF_${name}`]: large } };
      harness.apiserver.etcd.create("v1/secrets", `${namespace}/${name}`, secret);
    }
    await harness.project(organization, "shop", { envsFrom: [{ name: "one" }, { name: "two" }] });
  }
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

const read = (headers: Record<string, string>) =>
  fetch(`http://127.0.0.1:${port}/v1/project/shop/envs`, { headers });
const readAs = (organization: string) => read(harness.key(organization, "* on project:*"));
const secretsRead = () => harness.apiserver.requests.filter(({ path }) => path.includes("/secrets/")).length;

/** Requests 1.8 MB so many times, and reads nothing. */
function sendWithoutReading(times: number, organization = "acme"): Socket {
  const { "x-api-key": key } = harness.key(organization, "* on project:*");
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => {}).pause();
  socket.write(`GET /v1/project/shop/envs HTTP/1.1\r\nHost: a\r\nx-api-key: ${key}\r\n\r\n`.repeat(times));
  return socket;
}
/** The server's side of the next connection. */
async function accepted(): Promise<Socket> {
  const [socket] = (await once(harness.app.server, "connection")) as [Socket];
  return socket;
}

// Shows: docs/applications.md#errors-every-operation: 503 | `SERVER_BUSY`, with `Retry-After`: an
it("do not keep other organizations waiting, and have few answers generated for them", async () => {
  const others = harness.key("umbrella", "* on project:*");
  expect((await read(others)).status).toBe(200);
  const before = secretsRead();
  for (let client = 0; client < CLIENTS; client += 1) {
    sendWithoutReading(ASKED, client % 2 ? "acme" : "wayne");
  }
  await eventually("the first of them", () => secretsRead() > before);
  for (let time = 0; time < 5; time += 1) {
    const theirs = await read(others);
    expect([theirs.status, (await theirs.arrayBuffer()).byteLength > 1.7 * MIB]).toEqual([200, true]);
  }
  expect((secretsRead() - before) / 2).toBeLessThan((CLIENTS * ASKED) / 4);
});

// Each is of an organization of its own: those that wait from the test before would have its answers refused, and small.
// Shows: docs/authentication.md#clients-that-misbehave: slow headers, slow bodies, answers that nobody
it("are cut off when they take nothing for a while", async () => {
  const server = accepted();
  sendWithoutReading(10, "initech");
  const socket = await server;
  // The kernel takes about 4 MiB; what does not fit is ours to keep.
  await eventually("an answer that is not taken", () => socket.writableLength > 0);
  await eventually("the connection to be closed", () => socket.closed);
});

// Shows: docs/authentication.md#clients-that-misbehave: slow headers, slow bodies, answers that nobody
it("are cut off although their client continues to send", async () => {
  const server = accepted();
  const client = sendWithoutReading(4, "hooli");
  const socket = await server;
  await eventually("an answer that is not taken", () => socket.writableLength > 0);
  const sending = setInterval(() => client.write("x"), 100);
  try {
    await eventually("the connection to be closed", () => socket.closed);
  } finally {
    clearInterval(sending);
  }
});

it("have nothing generated for them once they have disconnected", async () => {
  const before = secretsRead();
  const client = sendWithoutReading(ASKED, "soylent");
  await eventually("the first of them", () => secretsRead() > before);
  client.destroy();
  const read = secretsRead();
  await eventually("a read of another client", async () => (await readAs("soylent")).status === 200);
  expect(secretsRead() - read).toBeLessThanOrEqual(2 * AT_WORK + 2);
});

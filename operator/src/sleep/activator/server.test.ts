import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { ACTIVATOR_HEADER, PROBE_USER_AGENT } from "@slipway/crds";
import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RequestBounds } from "./bounds.ts";
import { ActivatorMetrics } from "./metrics.ts";
import { type Address, hostnameOf, type SleepingProject } from "./projects.ts";
import { activatorServer } from "./server.ts";

const asleep: SleepingProject = {
  namespace: "slipway-org-acme",
  id: "pshop",
  uid: "u1",
  organization: "acme",
  sleepId: "s1",
};

let instance: Server;
let activator: Server;
let addresses: Address[];
let woken: string[];
let wakes: () => void;
let received: IncomingMessage[];

let shop: SleepingProject;
let slowMs: number;
let isStopping: boolean;
let forwarded: RequestBounds;
beforeEach(async () => {
  shop = asleep;
  slowMs = 0;
  isStopping = false;
  forwarded = new RequestBounds();
  addresses = [];
  woken = [];
  received = [];
  wakes = () => {};
  instance = createServer({ maxHeaderSize: 65_536 }, async (incoming, response) => {
    received.push(incoming);
    response.setHeader("connection", "keep-alive");
    await new Promise((resolve) => setTimeout(resolve, slowMs));
    response.end(`${incoming.method} ${incoming.url} ${await text(incoming)}`);
  });
  instance.on("upgrade", ({ headers }, socket) => {
    if (headers.upgrade !== "echo") {
      socket.destroy();
      return;
    }
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
    socket.pipe(socket);
  });
  instance.listen(0, "127.0.0.1");
  await once(instance, "listening");
  activator = await startActivator();
});
afterEach(() => {
  for (const server of [instance, activator]) {
    server.closeAllConnections();
    server.close();
  }
});

async function startActivator(bounds = new RequestBounds(), holdMs = 5_000): Promise<Server> {
  const server = activatorServer({
    find: (host) => (host === "shop.test" ? shop : undefined),
    current: () => shop,
    addresses: () => addresses,
    changed: (_, signal) =>
      new Promise((resolve) => {
        wakes = resolve;
        signal.addEventListener("abort", () => resolve());
      }),
    wake: ({ sleepId }) => void woken.push(sleepId ?? ""),
    metrics: new ActivatorMetrics(),
    log: silentLogger,
    bounds,
    forwarded,
    isStopping: () => isStopping,
    holdMs,
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;
const start = () => {
  addresses = [{ host: "127.0.0.1", port: portOf(instance) }];
  wakes();
};

async function send(
  {
    host = "shop.test",
    method = "GET",
    path = "/",
    headers = {},
    body,
  }: {
    host?: string;
    method?: string;
    path?: string;
    headers?: Record<string, string>;
    body?: string;
  } = {},
  server = activator,
) {
  const outgoing = request({
    host: "127.0.0.1",
    port: portOf(server),
    method,
    path,
    headers: { host, ...headers },
  });
  outgoing.end(body);
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) };
}

const until = async (is: () => boolean) => {
  while (!is()) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

describe("a request for a project that sleeps", () => {
  it("has it woken, waits, and is answered by the instance, with its body", async () => {
    const answered = send({ method: "POST", path: "/a?b=1", body: "some text" });
    await until(() => woken.length > 0);
    start();
    expect(await answered).toMatchObject({ status: 200, body: "POST /a?b=1 some text" });
    expect(woken[0]).toBe("s1");
  });

  it("keeps the headers of the ingress, and loses those of its connection", async () => {
    start();
    const headers = {
      "x-forwarded-for": "203.0.113.7",
      "x-forwarded-proto": "https",
      connection: "x-own, keep-alive",
      "x-own": "1",
      te: "trailers",
    };
    await send({ headers });
    const [one] = received;
    expect(one?.headers).toMatchObject({
      host: "shop.test",
      "x-forwarded-for": "203.0.113.7",
      "x-forwarded-proto": "https",
      connection: "close",
    });
    expect(one?.headers).not.toHaveProperty("x-own");
    expect(one?.headers).not.toHaveProperty("te");
  });

  it("is tried again where an instance does not take the connection", async () => {
    addresses = [{ host: "127.0.0.1", port: 1 }];
    const answered = send({ method: "PUT", body: "text" });
    await until(() => woken.length > 1);
    start();
    expect(await answered).toMatchObject({ status: 200, body: "PUT / text" });
  });

  // Shows: docs/sleep.md#when-a-project-sleeps: a request for a project that is falling asleep waits until
  it("waits while the project is falling asleep, though an instance still runs, until that is decided", async () => {
    shop = { ...shop, isEntering: true };
    start();
    const answered = send();
    await until(() => woken.length > 0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(received).toEqual([]);
    shop = { ...shop, isEntering: false, sleepId: undefined };
    wakes();
    expect(await answered).toMatchObject({ status: 200 });
  });

  it("is answered by an instance that takes longer than a connection may take, also after its wait could have ended", async () => {
    const server = await startActivator(new RequestBounds(), 500);
    slowMs = 1_500;
    start();
    expect(await send({ method: "POST", body: "text" }, server)).toMatchObject({
      status: 200,
      body: "POST / text",
    });
    server.close();
  });

  it("with a body is none for another protocol, whatever it offers", async () => {
    start();
    const headers = {
      connection: "Upgrade, HTTP2-Settings",
      upgrade: "h2c",
      "http2-settings": "AAMAAABkAAQ",
    };
    expect(await send({ method: "POST", body: "text", headers })).toMatchObject({
      status: 200,
      body: "POST / text",
    });
  });

  it("may have large headers", async () => {
    start();
    expect(await send({ headers: { cookie: "x".repeat(40_000) } })).toMatchObject({ status: 200 });
  });

  it("keeps its project awake while it is forwarded", async () => {
    shop = { ...shop, sleepId: undefined };
    slowMs = 500;
    start();
    const answered = send();
    await until(() => received.length === 1);
    shop = { ...shop, sleepId: "s2", isEntering: true };
    wakes();
    await until(() => woken.includes("s2"));
    expect(await answered).toMatchObject({ status: 200 });
  });

  it("is the last of its connection where the process is to end", async () => {
    start();
    expect((await send()).headers.connection).not.toBe("close");
    isStopping = true;
    expect((await send()).headers.connection).toBe("close");
  });

  it("gets 503 when no instance answers in time", async () => {
    const server = await startActivator(new RequestBounds(), 50);
    expect(await send({}, server)).toMatchObject({ status: 503, headers: { "retry-after": "5" } });
    server.close();
  });

  it("gets 503 when its project has too many already", async () => {
    const bounds = new RequestBounds({ total: 1, perOrganization: 1, perProject: 1 });
    const server = await startActivator(bounds);
    const held = send({}, server);
    await until(() => bounds.total === 1);
    expect(await send({}, server)).toMatchObject({ status: 503 });
    start();
    expect(await held).toMatchObject({ status: 200 });
    server.close();
  });

  it("is given up when its client goes away", async () => {
    const bounds = new RequestBounds();
    const server = await startActivator(bounds);
    const socket = connect(portOf(server), "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nhost: shop.test\r\n\r\n");
    await until(() => bounds.total === 1);
    socket.destroy();
    await until(() => bounds.total === 0);
    server.close();
  });

  // Shows: docs/sleep.md#waking: requests for another protocol (WebSocket), too
  it("may be for another protocol", async () => {
    const socket = connect(portOf(activator), "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nhost: shop.test\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
    await until(() => woken.length > 0);
    start();
    let all = "";
    socket.on("data", (chunk: Buffer) => {
      all += chunk.toString();
    });
    await until(() => all.includes("\r\n\r\n"));
    expect(all).toMatch(/^HTTP\/1\.1 101 /);
    socket.write("ping");
    await until(() => all.endsWith("ping"));
    // Longer than a connection may take.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    socket.write("pong");
    await until(() => all.endsWith("pingpong"));
    socket.destroy();
  });

  it("for another protocol does not wait any more once it is connected, and ends without a word of ours where it gives way", async () => {
    const bounds = new RequestBounds();
    forwarded = new RequestBounds({ total: 2, perOrganization: 2, perProject: 2 });
    const server = await startActivator(bounds);
    start();
    const open = () => {
      const socket = connect(portOf(server), "127.0.0.1");
      socket.write("GET / HTTP/1.1\r\nhost: shop.test\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
      return { socket, all: text(socket).catch(() => "") };
    };
    const both = [open(), open()];
    await until(() => forwarded.total === 2);
    expect(bounds.total).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const release = forwarded.admit("other", "p", () => {});
    expect(release).toBeDefined();
    expect((await both[1]?.all)?.match(/HTTP\/1\.1/g)).toHaveLength(1);
    both[0]?.socket.destroy();
    server.closeAllConnections();
    server.close();
  });
});

describe("what wakes nothing", () => {
  it("is a host that no project has", async () => {
    expect(await send({ host: "other.test" })).toMatchObject({ status: 503 });
    expect(woken).toEqual([]);
  });

  it("is a probe of the operator's, which is answered as from the activator for hosts that lead to projects alone", async () => {
    const unknown = await send({ host: "other.test", headers: { "user-agent": PROBE_USER_AGENT } });
    expect(unknown.status).toBe(503);
    expect(unknown.headers).not.toHaveProperty(ACTIVATOR_HEADER);
    const answer = await send({ headers: { "user-agent": PROBE_USER_AGENT } });
    expect(answer).toMatchObject({ status: 204, headers: { [ACTIVATOR_HEADER]: "1" } });
    expect(woken).toEqual([]);
  });
});

it("rejects a request whose length is said in two ways", async () => {
  start();
  const socket = connect(portOf(activator), "127.0.0.1");
  const head =
    "POST / HTTP/1.1\r\nhost: shop.test\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n";
  socket.end(`${head}0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: shop.test\r\n\r\n`);
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
  expect(received).toEqual([]);
});

it.each([
  ["Shop.Test:8080", "shop.test"],
  ["shop.test.", "shop.test"],
  ["shop.test/x", ""],
  ["a b", ""],
  ["[::1]:80", ""],
  [undefined, ""],
])("takes the hostname of %s", (host, hostname) => {
  expect(hostnameOf(host)).toBe(hostname);
});

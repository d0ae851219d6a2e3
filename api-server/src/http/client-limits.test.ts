import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { type HarnessOptions, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { CLIENT_LIMITS, LoadShedder } from "./client-limits.ts";

const busy = { statusCode: 503, code: "SERVER_BUSY", retryAfter: "2" };

async function start(options: HarnessOptions) {
  const harness = await startFakeHarness(options);
  onTestFinished(() => harness.close());
  await harness.app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = harness.app.server.address() as { port: number };
  /** Begins a request whose body does not come; resolves once the server has it. */
  const begin = async (from = "") => {
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    const { "x-api-key": key } = harness.key("acme", "* on organization:*");
    const seen = once(harness.app.server, "request");
    const head = `Host: a\r\nContent-Type: application/json\r\nx-api-key: ${key}\r\nContent-Length: 9\r\n${from}`;
    socket.write(`POST /v1/project HTTP/1.1\r\n${head}\r\n{`);
    await seen;
    return socket;
  };
  const read = async (headers: Record<string, string> = {}) => {
    const response = await harness.app.inject({ url: "/v1/project/plans", headers });
    const { statusCode } = response;
    return { statusCode, code: response.json().code, retryAfter: response.headers["retry-after"] };
  };
  return { harness, port, begin, read };
}

describe("one address", () => {
  // Shows: docs/applications.md#errors-every-operation: 503 | `SERVER_BUSY`, with `Retry-After`: an
  // Shows: docs/authentication.md#clients-that-misbehave: requests under way; connections | 512 of one
  it("has so many concurrent requests, by the address that trusted proxies forward, and no other one is refused for it", async () => {
    const clients = { ...CLIENT_LIMITS, requestsPerAddress: 2 };
    const { begin, read } = await start({ clients, trustedProxies: ["127.0.0.0/8"] });
    const from = (address: string) => `X-Forwarded-For: ${address}\r\n`;
    const sockets = [
      await begin(from("2001:db8::1")),
      await begin(from("2001:db8::2")),
      await begin(from("192.0.2.1")),
    ];
    expect(await read({ "x-forwarded-for": "2001:db8:0:0:ffff::9" })).toEqual(busy);
    expect((await read({ "x-forwarded-for": "192.0.2.1" })).statusCode).toBe(200);
    expect((await read({ "x-forwarded-for": "192.0.2.2" })).statusCode).toBe(200);
    sockets[0]?.destroy();
    await eventually("a place", async () => {
      const { statusCode } = await read({ "x-forwarded-for": "2001:db8::3" });
      return statusCode === 200;
    });
  });

  // Shows: docs/authentication.md#clients-that-misbehave: requests under way; connections | 512 of one
  it("has so many connections, unless it is a trusted proxy", async () => {
    const clients = { ...CLIENT_LIMITS, connectionsPerAddress: 2 };
    for (const [trustedProxies, open] of [
      [[], 2],
      [["127.0.0.1"], 4],
      [["127.0.0.0/8", "::1"], 4],
    ] as const) {
      const { harness, port } = await start({ clients, trustedProxies });
      const sockets = Array.from({ length: 4 }, () => connect(port, "127.0.0.1").on("error", () => {}));
      onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
      const count = () =>
        new Promise<number>((resolve) => harness.app.server.getConnections((_error, now) => resolve(now)));
      await eventually("the others to be closed", async () => (await count()) === open);
      await eventually(
        "that they hear of it",
        () => sockets.filter(({ closed }) => closed).length === 4 - open,
      );
    }
  });
});

// Shows: docs/applications.md#errors-every-operation: 503 | `SERVER_BUSY`, with `Retry-After`: an
it("nothing new is taken while memory is short", async () => {
  const shedder = { isOverloaded: true };
  const { read } = await start({ shedder });
  expect(await read()).toEqual(busy);
  shedder.isOverloaded = false;
  expect((await read()).statusCode).toBe(200);
});

it("refuses when memory is short in two samples, and no more once there is some", () => {
  let use = { heap: 0.5, process: 0.5 };
  const shedder = new LoadShedder(() => use, 60_000);
  const after = (heap: number, process: number): boolean => {
    use = { heap, process };
    shedder.sample();
    return shedder.isOverloaded;
  };
  expect([after(0.91, 0), after(0.95, 0), after(0.5, 0), after(0.95, 0), after(0.95, 0)]).toEqual([
    false,
    false,
    false,
    false,
    true,
  ]);
  expect([after(0.1, 0.89), after(0.1, 0.91), after(0.1, 0.91), after(0.1, 0.1)]).toEqual([
    false,
    false,
    true,
    false,
  ]);
  shedder.close();
});

it("reads the memory of the process", () => {
  const shedder = new LoadShedder();
  shedder.sample();
  expect(shedder.isOverloaded).toBe(false);
  shedder.close();
});

import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { labels, organizationNamespace } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { databaseSpec } from "../../../../test/kit/api-server/databases.ts";
import { ExecClient, ExecRefused } from "../../../../test/kit/api-server/exec-client.ts";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import { upgradesOf } from "../../http/upgrades.ts";

let harness: FakeHarness;
let headers: Record<string, string>;
let base: string;
beforeAll(async () => {
  harness = await startFakeHarness();
  headers = harness.key("acme", "project.exec on project:*");
  base = await harness.app.listen({ port: 0, host: "127.0.0.1" });
  await harness.project("acme", "shop");
  await harness.project("acme", "idle", { paused: true });
  await harness.project("acme", "data", databaseSpec("postgresql"));
});
afterAll(() => harness.close());

const namespace = organizationNamespace("acme");

/** An instance that runs, until the test is over. */
function runInstance(): void {
  const { etcd } = harness.apiserver;
  const key = `${namespace}/shop-0`;
  etcd.create("v1/pods", key, {
    metadata: { name: "shop-0", namespace, labels: { [labels.project]: "shop" } },
    status: { phase: "Running", containerStatuses: [{ name: "app", state: { running: {} } }] },
  });
  onTestFinished(() => void etcd.delete("v1/pods", key));
}

const open = async (project: string, query: { command: string[] }, protocols?: string[]) => {
  const error: unknown = await ExecClient.connect(base, project, "shop-0", query, headers, protocols).catch(
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ExecRefused);
  const { status, body } = error as ExecRefused;
  return `${status} ${body.code}`;
};

describe("GET /v1/project/:id/instances/:instance/exec", () => {
  // Shows: docs/exec.md#refusals: 426 | `WEBSOCKET_REQUIRED`
  it("is a WebSocket alone, of the subprotocol that it speaks", async () => {
    const url = "/v1/project/shop/instances/shop-0/exec?command=true";
    const answer = await harness.app.inject({ url, headers });
    expect([answer.statusCode, answer.json().code, answer.headers.upgrade]).toEqual([
      426,
      "WEBSOCKET_REQUIRED",
      "websocket",
    ]);
    expect(await open("shop", { command: ["true"] }, ["v4.channel.k8s.io"])).toBe("426 WEBSOCKET_REQUIRED");
    expect(await open("shop", { command: ["true"] }, [])).toBe("426 WEBSOCKET_REQUIRED");
  });

  // Shows: docs/exec.md#refusals: 400 | `PROJECT_TYPE_MISMATCH`
  // Shows: docs/exec.md#refusals: 409 | `PROJECT_PAUSED`
  it("is of applications that run", async () => {
    expect(await open("data", { command: ["true"] })).toBe("400 PROJECT_TYPE_MISMATCH");
    expect(await open("idle", { command: ["true"] })).toBe("409 PROJECT_PAUSED");
    expect(await open("none", { command: ["true"] })).toBe("404 PROJECT_NOT_FOUND");
    expect(await open("shop", { command: ["true"] })).toBe("404 INSTANCE_NOT_FOUND");
  });

  // Shows: docs/exec.md#refusals: 400 | `VALIDATION_FAILED`
  it.each([
    ["no command", []],
    ["an empty program", ["", "x"]],
    ["too many words", Array.from({ length: 65 }, () => "x")],
    ["too many characters", ["x".repeat(4_097), "y".repeat(4_097)]],
  ])("refuses %s", async (_name, command) => {
    expect(await open("shop", { command })).toBe("400 VALIDATION_FAILED");
  });

  // Shows: docs/exec.md#refusals: 503 | `EXEC_UNAVAILABLE`
  it("is refused when the cluster does not start it, and its row in the audit log says so", async () => {
    runInstance();
    harness.apiserver.failNext(({ path }) => path.endsWith("/exec"), { status: 500 });
    expect(await open("shop", { command: ["sh"] })).toBe("503 EXEC_UNAVAILABLE");
    expect(harness.audited.at(-1)).toMatchObject({
      operation: 'execInstance {"instance":"shop-0","stdin":false,"tty":false,"command":["sh"]}',
      status: 503,
      code: "EXEC_UNAVAILABLE",
    });
    expect(harness.services.exec.size).toBe(0);
  });

  it.each([
    ["with a protocol twice", "v5.channel.k8s.io, v5.channel.k8s.io"],
    ["with what is no name of a protocol", "v5.channel.k8s.io, a b"],
    ["with an empty one", "v5.channel.k8s.io,, a"],
  ])("starts no command for a handshake %s", async (_name, protocols) => {
    runInstance();
    harness.apiserver.requests.length = 0;
    const handshake = {
      connection: "upgrade",
      upgrade: "websocket",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      "sec-websocket-version": "13",
      "sec-websocket-protocol": protocols,
    };
    const url = `${base}/v1/project/shop/instances/shop-0/exec?command=true`;
    const asked = request(url, { headers: { ...headers, ...handshake } }).end();
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    expect(response.statusCode).toBe(426);
    response.resume();
    expect(harness.apiserver.requests.filter(({ path }) => path.endsWith("/exec"))).toEqual([]);
  });

  it("takes nothing else from the query: no container, and no credential", async () => {
    for (const query of ["container=proxy", "stdin=1", `x-api-key=${headers["x-api-key"]}`, "stdout=true"]) {
      const url = `/v1/project/shop/instances/shop-0/exec?command=true&${query}`;
      const answer = await harness.app.inject({ url, headers });
      expect(`${query.slice(0, 9)}: ${answer.json().code}`).toBe(`${query.slice(0, 9)}: VALIDATION_FAILED`);
    }
  });

  it("frees the place of a refused session, and audits its refusal", async () => {
    await open("shop", { command: ["true"] });
    expect(harness.services.exec.size).toBe(0);
    expect(harness.audited.at(-1)).toMatchObject({
      operation: "execInstance",
      projectId: "shop",
      status: 404,
      code: "INSTANCE_NOT_FOUND",
    });
  });

  it("closes the connection of a refused WebSocket, on which nothing else can be asked", async () => {
    const socket = connect(Number(new URL(base).port), "127.0.0.1");
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    const lines = [
      "GET /v1/project/shop/instances/x/exec?command=a HTTP/1.1",
      "host: test",
      "connection: upgrade",
    ];
    socket.write(
      `${[...lines, "upgrade: websocket"].join("\r\n")}\r\n\r\nGET /v1/project/plans HTTP/1.1\r\n\r\n`,
    );
    await once(socket, "close");
    const text = Buffer.concat(chunks).toString();
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    expect(text.toLowerCase()).toContain("connection: close");
    expect(text.split("HTTP/1.1 ")).toHaveLength(2);
  });

  it("closes a connection on which the WebSocket is asked for behind an answer that is under way", async () => {
    const socket = connect(Number(new URL(base).port), "127.0.0.1");
    socket.resume();
    const closed = once(socket, "close");
    const exec = "GET /v1/project/a/instances/b/exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n";
    socket.write(`GET /v1/project/plans HTTP/1.1\r\nHost: a\r\n\r\n${exec}Upgrade: websocket\r\n\r\n`);
    await closed;
    expect((await harness.app.inject("/v1/project/plans")).statusCode).toBe(200);
    expect((await fetch(`${base}/v1/project/plans`)).status).toBe(200);
  });

  it("leaves other paths as they are, whatever they ask to become", async () => {
    const upgrade = { connection: "upgrade", upgrade: "websocket" };
    const socket = connect(Number(new URL(base).port), "127.0.0.1");
    const answered = once(socket, "data");
    const lines = Object.entries({ host: "test", ...upgrade }).map(([name, value]) => `${name}: ${value}`);
    socket.write(`GET /v1/project/plans HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
    expect(String((await answered)[0])).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });
});

describe("upgradesOf", () => {
  const upgrades = upgradesOf(["/v1/project/:id/instances/:instance/exec"]);
  const isUpgraded = (url: string, method = "GET", upgrade: string | undefined = "WebSocket") =>
    upgrades({ url, method, headers: { upgrade } } as never);
  it.each([
    ["/v1/project/a/instances/b/exec", true],
    ["/v1/project/a/instances/b/exec?command=x", true],
    ["/v1/project/a/instances/b/execs", false],
    ["/v1/project/a/b/instances/b/exec", false],
    ["/v1/project?x=/v1/project/a/instances/b/exec", false],
  ])("%s: %s", (url, isOne) => {
    expect(isUpgraded(url)).toBe(isOne);
    expect(isUpgraded(url, "POST")).toBe(false);
    expect(isUpgraded(url, "GET", "h2c")).toBe(false);
  });
});

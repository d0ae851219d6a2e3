import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { signBody } from "@slipway/git";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { memoryBuilds } from "../../../../test/kit/api-server/builds.ts";
import { fakeGit, putConnection } from "../../../../test/kit/api-server/git.ts";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import { buildApp } from "../../app.ts";
import { MemoryRateLimiter } from "../../rate-limit/limiter.ts";

/** Deliveries of one organization's many connections beside another's, all from the address of one Git server. */

const MIB = 1024 * 1024;
const MANY = 20;
const ofMany = (index: number): string => `gmany${index % MANY}`;
const OTHER = "gother";
const UNKNOWN = "gnone";

let harness: FakeHarness;
let port: number;
/** Whose deliveries the queue keeps waiting. */
let slow: string | undefined;
let endSlow: PromiseWithResolvers<void>;
let queueing: number;
beforeAll(async () => {
  const store = memoryBuilds();
  const { queue } = store.deliveries;
  store.deliveries.queue = async (delivery, event) => {
    if (delivery.organizationId === slow) {
      queueing += 1;
      await endSlow.promise;
    }
    return queue(delivery, event);
  };
  harness = await startFakeHarness({ git: fakeGit(), builds: { store } });
  for (const organization of ["many", "other"]) {
    await harness.namespace(organization);
  }
  for (let index = 0; index < MANY; index += 1) {
    await putConnection(harness.kube, "many", ofMany(index));
  }
  await putConnection(harness.kube, "other", OTHER);
  await harness.app.listen({ port: 0, host: "127.0.0.1" });
  port = (harness.app.server.address() as { port: number }).port;
  // It was created last.
  await eventually("it to be known", async () => (await deliver(OTHER, "first")) === 202);
});
beforeEach(() => {
  slow = undefined;
  queueing = 0;
  endSlow = Promise.withResolvers();
});
const sockets: Socket[] = [];
afterEach(async () => {
  endSlow.resolve();
  const open = sockets.splice(0).filter((socket) => !socket.closed);
  for (const socket of open) {
    socket.destroy();
  }
  await Promise.all(open.map((socket) => once(socket, "close")));
});
afterAll(() => harness.close());

const push = JSON.stringify({
  ref: "refs/heads/main",
  after: "c".repeat(40),
  repository: { id: 17, full_name: "acme/shop" },
});
const signed = (id: string) => ({
  "content-type": "application/json",
  "x-gitea-event": "push",
  "x-gitea-delivery": `0a1b2c3d-${id}`,
  "x-gitea-signature": signBody("hook-secret", Buffer.from(push)),
});
async function deliver(connection: string, id: string): Promise<number> {
  const url = `http://127.0.0.1:${port}/v1/git/hooks/${connection}`;
  const response = await fetch(url, { method: "POST", headers: signed(id), body: push });
  await response.arrayBuffer();
  return response.status;
}

/** Announces a body of the largest size and sends none of it; resolves with the status once it is answered. */
async function stall(connection: string): Promise<number> {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => {});
  await once(socket, "connect");
  const type = "Content-Type: application/json";
  socket.write(
    `POST /v1/git/hooks/${connection} HTTP/1.1\r\nHost: a\r\n${type}\r\nContent-Length: ${MIB}\r\n\r\n`,
  );
  const [answer] = (await once(socket, "data")) as [Buffer];
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer.toString("latin1"))?.[1]);
}

// Shows: docs/git.md#hooks: however many connections an organization has, its deliveries take the
it("whose bodies do not come keep the share of one organization, and another's is taken", async () => {
  const answers: number[] = [];
  for (let index = 0; index < MANY; index += 1) {
    void stall(ofMany(index)).then(
      (status) => answers.push(status),
      () => undefined,
    );
  }
  await expect.poll(() => answers.length).toBe(MANY - 4);
  expect(new Set(answers)).toEqual(new Set([503]));
  expect(await deliver(OTHER, "beside-stalled")).toBe(202);
});

// Shows: docs/git.md#hooks: however many connections an organization has, its deliveries take the
it("that take long to queue leave places, and another's is taken without a wait", async () => {
  slow = "many";
  const answers = Array.from({ length: MANY }, (_, index) => deliver(ofMany(index), `slow-${index}`));
  // Three quarters of the places, though each is of another connection.
  await expect.poll(() => queueing).toBeGreaterThanOrEqual(12);
  await sleep(200);
  const begun = performance.now();
  expect(await deliver(OTHER, "beside-slow")).toBe(202);
  expect(performance.now() - begun).toBeLessThan(2_000);
  expect(queueing).toBe(12);
  endSlow.resolve();
  expect(new Set(await Promise.all(answers))).toEqual(new Set([202]));
});

// Shows: docs/git.md#hooks: however many connections an organization has, its deliveries take the
it("that are too many do not count as another's, though their address is the same", async () => {
  const app = buildApp({
    ...harness.services,
    rateLimitScale: 0.01,
    rateLimiter: new MemoryRateLimiter(),
  });
  const send = async (connection: string): Promise<number> => {
    const url = `/v1/git/hooks/${connection}`;
    return (await app.inject({ method: "POST", url, headers: signed("unsigned"), payload: "{}" })).statusCode;
  };
  const statuses: number[] = [];
  for (let index = 0; index < MANY; index += 1) {
    statuses.push(await send(ofMany(index)));
  }
  expect(statuses).toEqual([...Array(6).fill(401), ...Array(MANY - 6).fill(429)]);
  expect(await send(OTHER)).toBe(401);
  await app.close();
});

// Shows: docs/authentication.md#clients-that-misbehave: deliveries of hooks | 4 MiB of bodies of the
it("of an unknown connection are refused by their headers, without a request to the cluster", async () => {
  const before = harness.apiserver.requests.length;
  expect(await Promise.all([UNKNOWN, "G!", "%F0%9F%9A%A2"].map(stall))).toEqual([401, 401, 401]);
  expect(harness.apiserver.requests.slice(before).map(({ path }) => path)).toEqual([]);
});

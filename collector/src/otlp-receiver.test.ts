import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { AccessEvent } from "@slipway/analytics";
import { systemClock } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Disk, realDisk } from "./disk.ts";
import { CollectorMetrics } from "./metrics.ts";
import { type ExportRequest, encodeProtobuf } from "./otlp-format.ts";
import { createReceiver, type ReceiverOptions } from "./otlp-receiver.ts";
import type { NoOwner } from "./resolver.ts";
import { Spool } from "./spool.ts";
import type { Owner } from "./traefik-names.ts";

let folder: string;
let spool: Spool;
let server: Server | undefined;
let url: string;
let isDiskFull: boolean;
let isFull: boolean;
/** Whose the requests of each service are. */
let owners: Map<string, Owner | NoOwner>;
const metrics = new CollectorMetrics();
const owner = { organization: "o1", project: "p1" };
const quiet = { info: () => {}, warn: () => {}, error: () => {} };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "otlp-"));
  isDiskFull = false;
  isFull = false;
  owners = new Map([["shop@kubernetes", owner]]);
  const disk: Disk = {
    ...realDisk,
    write: (path, content) =>
      isDiskFull ? Promise.reject(new Error("ENOSPC")) : realDisk.write(path, content),
  };
  spool = await Spool.open(disk, folder, () => 1);
  await listen({});
});

/** Starts a receiver, in place of the one before. */
async function listen(options: Partial<ReceiverOptions>): Promise<void> {
  server?.close();
  server = createReceiver({
    spool,
    quota: { isFull: async () => isFull },
    resolve: ({ target }) => owners.get(target.object?.key ?? target.service) ?? "not_a_project",
    isTrusted: (address) => address === "10.0.0.1",
    tokenFile: undefined,
    metrics,
    log: quiet,
    clock: systemClock,
    ...options,
  });
  const listening = server;
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}/v1/logs`;
}

afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => server?.close(resolve));
  await rm(folder, { recursive: true });
});

/** As Traefik exports them: every field an attribute, numbers as 64 bits. */
const record = (path: string, service = "shop@kubernetes") => ({
  body: { stringValue: "whatever" },
  attributes: [
    { key: "RequestMethod", value: { stringValue: "GET" } },
    { key: "RequestPath", value: { stringValue: `${path}?secret=1` } },
    { key: "DownstreamStatus", value: { intValue: "200" } },
    { key: "DownstreamContentSize", value: { intValue: "42" } },
    { key: "Duration", value: { intValue: "1500000" } },
    { key: "StartUTC", value: { stringValue: "2026-11-22T04:42:01.682Z" } },
    { key: "ClientAddr", value: { stringValue: "203.0.113.9:1" } },
    { key: "ServiceName", value: { stringValue: service } },
  ],
});
const logs = (...logRecords: object[]): ExportRequest => ({
  resourceLogs: [{ scopeLogs: [{ logRecords }] }],
});

const post = (body: Uint8Array | string, headers: Record<string, string>) =>
  fetch(url, { method: "POST", body: Buffer.from(body), headers }).then((answer) => answer.status);
const protobuf = { "content-type": "application/x-protobuf" };
const json = { "content-type": "application/json; charset=utf-8" };
const packed = { "content-encoding": "gzip" };

async function kept(): Promise<AccessEvent[]> {
  const again = await Spool.open(realDisk, folder, () => 1);
  const events: AccessEvent[] = [];
  for (let oldest = again.oldest; oldest; oldest = again.oldest) {
    events.push(...(await again.read(oldest)).events);
    await again.done(oldest);
  }
  return events;
}

test("records in protobuf with gzip and in JSON are on the disk when they are acknowledged", async () => {
  const sent = logs(record("/a/1"), record("/b", "api@kubernetes"), { body: { stringValue: "hello" } });
  expect(await post(gzipSync(encodeProtobuf("logs", sent)), { ...protobuf, ...packed })).toBe(200);
  expect(await post(JSON.stringify(logs(record("/c"))), json)).toBe(200);
  const events = await kept();
  expect(events.map(({ path }) => path)).toEqual(["/a/1", "/c"]);
  expect(events[0]).toEqual({
    organization: "o1",
    project: "p1",
    at: Date.UTC(2026, 10, 22, 4, 42, 1, 682),
    status: 200,
    method: "GET",
    route: "/a/:number",
    path: "/a/1",
    userAgent: "",
    sourceIp: "203.0.113.9",
    bytesReceived: 0,
    bytesSent: 42,
    latencyUs: 1500,
  });
});

test("the fields may be the text of the body", async () => {
  const fields = Object.fromEntries(
    record("/body").attributes.map(({ key, value }) => [
      key,
      "intValue" in value ? Number(value.intValue) : value.stringValue,
    ]),
  );
  expect(await post(JSON.stringify(logs({ body: { stringValue: JSON.stringify(fields) } })), json)).toBe(200);
  expect((await kept()).map(({ path }) => path)).toEqual(["/body"]);
});

// Shows: docs/analytics.md#other-ingresses: logs over OTLP are acknowledged once they are on the disk
test("what is sent again in the same bytes counts once, also while it is being written", async () => {
  const body = encodeProtobuf("logs", logs(record("/once")));
  expect(await Promise.all([1, 2, 3].map(() => post(body, protobuf)))).toEqual([200, 200, 200]);
  // The id outlives the process: the store knows it.
  expect(spool.count).toBe(1);
  const { id } = await spool.read(spool.oldest as never);
  expect(id).toMatch(/^otlp-[0-9a-f]{40}$/);
});

// Shows: docs/analytics.md#other-ingresses: logs over OTLP are acknowledged once they are on the disk
test("nothing is acknowledged that is not on the disk, and an exporter may try again", async () => {
  const body = encodeProtobuf("logs", logs(record("/later")));
  isDiskFull = true;
  expect(await post(body, protobuf)).toBe(503);
  isDiskFull = false;
  expect(await post(body, protobuf)).toBe(200);
  expect((await kept()).map(({ path }) => path)).toEqual(["/later"]);
});

test("what is no logs is refused for good, and a full buffer for now", async () => {
  expect(await post("{", json)).toBe(400);
  expect(await post("[]", json)).toBe(400);
  expect(await post(new Uint8Array([255, 255, 255]), protobuf)).toBe(400);
  expect(await post("no gzip", { ...protobuf, ...packed })).toBe(400);
  expect(await post("text", { "content-type": "text/plain" })).toBe(415);
  expect(await post("{}", { ...json, "content-encoding": "br" })).toBe(415);
  expect(await post("x".repeat(9_000_000), json)).toBe(413);
  expect(await post(gzipSync(Buffer.alloc(40_000_000)), { ...protobuf, ...packed })).toBe(413);
  expect(await fetch(url).then(({ status }) => status)).toBe(405);
  expect(await post('{"resourceLogs":[null,{"scopeLogs":[{"logRecords":[{}]}]}]}', json)).toBe(200);
  const odd = [
    null,
    {},
    { key: 5, value: {} },
    { key: "http.request.method" },
    { key: "url.path", value: [] },
  ];
  expect(await post(JSON.stringify(logs({ attributes: odd }, { attributes: {} })), json)).toBe(200);
  const deep = `${'{"arrayValue":{"values":['.repeat(50_000)}${"]}}".repeat(50_000)}`;
  const bomb = JSON.stringify(logs({ attributes: [{ key: "a", value: "VALUE" }] })).replace('"VALUE"', deep);
  expect(await post(bomb, json)).toBe(400);
  expect(spool.count).toBe(0);
  isFull = true;
  expect(await post(JSON.stringify(logs(record("/full"))), json)).toBe(503);
});

/** By the semantic conventions, as a gateway sends them that is not Traefik. */
const conventional = (project: string, endedAt = Date.now()) => ({
  timeUnixNano: `${endedAt}000000`,
  attributes: [
    { key: "http.request.method", value: { stringValue: "GET" } },
    { key: "url.path", value: { stringValue: `/${project}` } },
    { key: "http.response.status_code", value: { intValue: 200 } },
    { key: "http.server.request.duration", value: { doubleValue: 0.01 } },
    { key: "k8s.namespace.name", value: { stringValue: "slipway-org-o1" } },
    { key: "k8s.ingress.name", value: { stringValue: project } },
  ],
});

const refusedOf = async (reason: string) =>
  Number(
    new RegExp(`refused_lines_total\\{reason="${reason}"\\} (\\d+)`).exec(
      await metrics.registry.metrics(),
    )?.[1],
  );

test("a project that is not known yet is waited for, and a request sent twice meanwhile counts once", async () => {
  owners.set("slipway-org-o1/new", "unknown");
  const body = encodeProtobuf("logs", logs(conventional("new"), record("/known")));
  const sent = [post(body, protobuf), post(body, protobuf)];
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(spool.count).toBe(0);
  owners.set("slipway-org-o1/new", owner);
  expect(await Promise.all(sent)).toEqual([200, 200]);
  expect((await kept()).map(({ path }) => path)).toEqual(["/new", "/known"]);
});

// Shows: docs/analytics.md#other-ingresses: a request of a project that is not known yet waits for it
test("one that nobody knows of after three seconds is dropped and counted, and the others are kept", async () => {
  owners.set("slipway-org-o1/never", "unknown");
  const before = await refusedOf("unknown");
  const start = performance.now();
  const old = conventional("never", Date.now() - 60_000);
  expect(await post(encodeProtobuf("logs", logs(old)), protobuf)).toBe(200);
  // It had its time.
  expect(performance.now() - start).toBeLessThan(1_000);
  // Whatever the other machine's clock says.
  const ahead = conventional("never", Date.now() + 3_600_000);
  expect(await post(encodeProtobuf("logs", logs(ahead, record("/known"))), protobuf)).toBe(200);
  const took = performance.now() - start;
  expect(took).toBeGreaterThan(2_900);
  expect(took).toBeLessThan(8_000);
  expect((await kept()).map(({ path }) => path)).toEqual(["/known"]);
  expect((await refusedOf("unknown")) - before).toBe(2);
});

// Shows: docs/analytics.md#other-ingresses: pods of another ingress may send, other pods may not
test("with a token, requests without it are rejected", async () => {
  const tokenFile = join(folder, "token");
  await writeFile(tokenFile, "first\n");
  await listen({ tokenFile });
  const body = JSON.stringify(logs(record("/secret")));
  const bearer = (token: string) => post(body, { ...json, authorization: `Bearer ${token}` });
  expect(await post(body, json)).toBe(401);
  expect(await bearer("second")).toBe(401);
  expect(spool.count).toBe(0);
  expect(await bearer("first")).toBe(200);
  await writeFile(tokenFile, "second");
  expect([await bearer("first"), await bearer("second")]).toEqual([401, 200]);
  await writeFile(tokenFile, "");
  expect([await bearer(""), await post(body, { ...json, authorization: "Bearer" })]).toEqual([401, 401]);
});

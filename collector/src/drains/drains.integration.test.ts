/** The process that delivers log drains, on a real ClickHouse, with receivers on loopback. */

import { setTimeout as sleep } from "node:timers/promises";
import { insertLogs, type LogEvent, migrate, openStore, type Store } from "@slipway/analytics";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { DrainsProcess } from "../../../test/kit/drains/drains-process.ts";
import {
  messageText,
  type OtlpAnswer,
  startOtlpReceiver,
  startSyslogReceiver,
} from "../../../test/kit/drains/receivers.ts";
import { isLong } from "../../../test/kit/long.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { startClickHouse, type TestClickHouse } from "../../../test/kit/servers/clickhouse.ts";

const START_MS = 900_000;
const KILLS = isLong ? 40 : 6;

let server: TestClickHouse;
beforeAll(async () => {
  server = await startClickHouse();
}, START_MS);
afterAll(() => server?.stop());

let database = 0;
let store: Store;
let drains: DrainsProcess;
let offset = 0;
const open: { close: () => unknown }[] = [];

beforeEach(async () => {
  database += 1;
  const { url, username, passwordFile } = server;
  const settings = { url, username, passwordFile, database: `drains${database}` };
  store = openStore({ ...settings, caFile: undefined, cluster: undefined });
  await migrate(store);
  drains = await DrainsProcess.open();
  open.push(store.client, drains);
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
});

const start = (allowed: string[], env: Record<string, string> = {}) =>
  drains.start({
    SLIPWAY_ANALYTICS_URL: server.url,
    SLIPWAY_ANALYTICS_USERNAME: server.username,
    SLIPWAY_ANALYTICS_PASSWORD_FILE: server.passwordFile,
    SLIPWAY_ANALYTICS_DATABASE: `drains${database}`,
    SLIPWAY_LOG_DRAINS_ALLOWED_HOSTS: allowed.join(","),
    ...env,
  });

/** Inserts lines as a collector does. */
async function write(texts: readonly string[], source: Partial<LogEvent> = {}): Promise<void> {
  const events = texts.map((text): LogEvent => {
    offset += 1;
    return {
      ...{ organization: "o1", project: "p1", instance: "p1-a", container: "app", stream: "stdout" },
      ...{ at: `${Date.now()}000000`, level: null, text, continues: false, file: "0123456789abcdef", offset },
      ...{ omittedLines: 0, omittedBytes: 0, lostFiles: 0, days: 8, ...source },
    };
  });
  await insertLogs(store, { id: `batch-${database}-${offset}`, events });
}

const numbered = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => `line ${from + index}`);
const missing = (wanted: readonly string[], got: readonly string[]) => {
  const found = new Set(got);
  return wanted.filter((text) => !found.has(text));
};
const condition = async (organization: string, name: string, type: string) => {
  const { status } = await drains.drain(organization, name);
  return status?.conditions?.find((one) => one.type === type);
};

// Shows: docs/log-drains.md#what-is-sent: lines of all projects of the organization, or of one
test("lines go to the receivers of their organization, or of their project, with its name and headers, and to no other", async () => {
  const [all, one, other] = await Promise.all([
    startOtlpReceiver(),
    startSyslogReceiver(),
    startOtlpReceiver(),
  ]);
  open.push(all, one, other);
  await drains.addProject("o1", "p1", "Shop");
  await drains.addSecret("o1", "token", { "header.Authorization": "Bearer secret-token" });
  await drains.addDrain("o1", "all", {
    displayName: "All",
    otlpHttp: { endpoint: all.url },
    ca: all.ca,
    secretRef: { name: "token" },
  });
  await drains.addDrain("o1", "one", {
    displayName: "One",
    projectRef: { name: "p2" },
    syslog: { host: "localhost", port: one.port },
    ca: one.ca,
  });
  await drains.addDrain("o2", "other", {
    displayName: "Other",
    otlpHttp: { endpoint: other.url },
    ca: other.ca,
  });
  start([all.host, one.host, other.host]);
  await write(["of p1"]);
  await write(["of p2"], { project: "p2", level: "error" });
  await write(["of another"], { organization: "o3" });
  // What is no line is not sent.
  await write([""], { omittedLines: 3 });
  await eventually("lines arrive", () => all.texts.length >= 2 && one.messages.length >= 1).catch((error) => {
    throw new Error(`${error.message}: ${drains.log}`);
  });
  expect([...all.texts].sort()).toEqual(["of p1", "of p2"]);
  expect(one.messages.map(messageText)).toEqual(["of p2"]);
  expect(other.texts).toEqual([]);
  const [request] = all.requests;
  expect(request?.headers.authorization).toBe("Bearer secret-token");
  expect(JSON.stringify(request?.body)).toContain('{"key":"service.name","value":{"stringValue":"Shop"}}');
  // Each drain's status is reported for itself, so that one may be ready after another delivered.
  await eventually(
    "statuses say so",
    async () =>
      (await condition("o1", "all", "Delivering"))?.status === "True" &&
      (await condition("o2", "other", "Ready"))?.status === "True",
  );
  expect(await condition("o2", "other", "Delivering")).toBeUndefined();
  expect(drains.log).not.toContain("secret-token");
}, 120_000);

test("nothing is written while lines are taken, and none are there", async () => {
  const receiver = await startOtlpReceiver();
  open.push(receiver);
  await drains.addDrain("o1", "d", {
    displayName: "D",
    otlpHttp: { endpoint: receiver.url },
    ca: receiver.ca,
  });
  start([receiver.host]);
  await write(["first"]);
  await eventually(
    "it is reported",
    async () => (await condition("o1", "d", "Delivering"))?.status === "True",
  );
  const writes = () =>
    drains.api.requests.filter(({ method, path }) => method !== "GET" && path.includes("logdrains")).length;
  const before = writes();
  for (let round = 0; round < 6; round += 1) {
    await write([`more ${round}`]);
    await sleep(1_000);
  }
  await eventually("all arrive", () => receiver.texts.length >= 7);
  expect(writes()).toBe(before);
}, 120_000);

// Shows: docs/log-drains.md#at-least-once: what comes while a receiver is away
test("what comes while a receiver is away, refuses or is slow is sent once it is back, and others get theirs meanwhile", async () => {
  let answer: OtlpAnswer | undefined = { status: 503, headers: { "retry-after": "1" } };
  const away = await startOtlpReceiver(() => answer);
  const silent = await startOtlpReceiver(() => undefined);
  const well = await startSyslogReceiver();
  open.push(away, silent, well);
  const otlp = (receiver: { url: string; ca: string }) => ({
    displayName: "D",
    otlpHttp: { endpoint: receiver.url },
    ca: receiver.ca,
  });
  await drains.addDrain("o1", "away", otlp(away));
  await drains.addDrain("o1", "silent", otlp(silent));
  await drains.addDrain("o1", "well", {
    displayName: "W",
    syslog: { host: "localhost", port: well.port },
    ca: well.ca,
  });
  start([away.host, silent.host, well.host]);
  const texts = numbered(3_000);
  for (let from = 0; from < texts.length; from += 500) {
    await write(texts.slice(from, from + 500));
  }
  await eventually("the well one has all", () => well.messages.length >= texts.length);
  expect(missing(texts, well.messages.map(messageText))).toEqual([]);
  await eventually("the failure is reported", async () => {
    const found = await condition("o1", "away", "Delivering");
    return found?.status === "False" && found.message === "the receiver answers with 503";
  });
  await eventually("the lag is a metric", async () =>
    /slipway_log_drains_lag_seconds\{state="failing"\} [1-9]/.test(await drains.metrics()),
  );
  expect(away.texts).toEqual([]);
  answer = { status: 200 };
  await eventually("the other has all", () => missing(texts, away.texts).length === 0, 90_000);
}, 240_000);

// Shows: docs/log-drains.md#at-least-once: lines that a receiver refuses for good are counted
test("lines that a receiver refuses for good are counted and not sent again", async () => {
  const receiver = await startOtlpReceiver(() => ({ status: 400 }));
  open.push(receiver);
  await drains.addDrain("o1", "d", {
    displayName: "D",
    otlpHttp: { endpoint: receiver.url },
    ca: receiver.ca,
  });
  start([receiver.host]);
  await write(["a", "b"]);
  await eventually("it is counted", async () => (await drains.drain("o1", "d")).status?.refusedLines === 2);
  expect(await condition("o1", "d", "Delivering")).toMatchObject({
    status: "False",
    reason: "ReceiverRefused",
  });
  const { length } = receiver.requests;
  await sleep(3_000);
  expect(receiver.requests.length).toBe(length);
}, 120_000);

// Shows: docs/log-drains.md#addresses: never to an address that is not public
test("a drain to a private address, or whose Secret does not exist, says so", async () => {
  const receiver = await startOtlpReceiver();
  open.push(receiver);
  await drains.addDrain("o1", "private", {
    displayName: "D",
    otlpHttp: { endpoint: `https://127.0.0.1:${receiver.port}` },
    ca: receiver.ca,
  });
  await drains.addDrain("o1", "secret", {
    displayName: "D",
    otlpHttp: { endpoint: receiver.url },
    secretRef: { name: "none" },
  });
  start([]);
  await write(["a"]);
  const reason = async (name: string, type: string) => (await condition("o1", name, type))?.reason;
  await eventually("both say so", async () => {
    return (
      (await reason("private", "Delivering")) === "AddressRefused" &&
      (await reason("secret", "Ready")) === "SecretNotFound"
    );
  });
  expect(receiver.connections()).toBe(0);
}, 120_000);

// Shows: docs/log-drains.md#at-least-once: whenever the process is killed
test("killed at random under traffic, with a receiver that fails, it sends every line at least once", async () => {
  const [otlp, syslog] = await Promise.all([
    startOtlpReceiver(() =>
      Math.random() < 0.2 ? { status: 503, headers: { "retry-after": "0" } } : { status: 200 },
    ),
    startSyslogReceiver(() => (Math.random() < 0.2 ? "away" : "take")),
  ]);
  open.push(otlp, syslog);
  await drains.addDrain("o1", "otlp", { displayName: "O", otlpHttp: { endpoint: otlp.url }, ca: otlp.ca });
  await drains.addDrain("o1", "syslog", {
    displayName: "S",
    syslog: { host: "localhost", port: syslog.port },
    ca: syslog.ca,
  });
  let isWriting = true;
  const texts: string[] = [];
  const writing = (async () => {
    while (isWriting) {
      const next = numbered(50, texts.length);
      // Two collectors at a time: inserts overlap.
      await Promise.all([write(next.slice(0, 25)), write(next.slice(25), { instance: "p1-b" })]);
      texts.push(...next);
      await sleep(50);
    }
  })();
  for (let round = 0; round < KILLS; round += 1) {
    const before = otlp.requests.length;
    start([otlp.host, syslog.host]);
    // A Lease of a process that was killed is free once it has expired.
    await eventually("something is sent", () => otlp.requests.length > before, 90_000).catch(
      (error: Error) => {
        throw new Error(`${error.message}, round ${round}: ${drains.log}`);
      },
    );
    await sleep(Math.random() * 2_000);
    await drains.kill("SIGKILL");
  }
  isWriting = false;
  await writing;
  expect(texts.length).toBeGreaterThan(0);
  start([otlp.host, syslog.host]);
  const all = () =>
    missing(texts, otlp.texts).length === 0 && missing(texts, syslog.messages.map(messageText)).length === 0;
  await eventually("every line arrives", all, 120_000).catch(() => {});
  expect(missing(texts, otlp.texts), drains.log).toEqual([]);
  expect(missing(texts, syslog.messages.map(messageText)), drains.log).toEqual([]);
}, 900_000);

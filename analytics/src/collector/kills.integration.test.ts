import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { KubeClient, resources } from "@slipway/kube";
import { eventually, FakeApiserver } from "@slipway/kube/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stringify } from "yaml";
import { FakeContainerLog } from "../testing/fake-kubelet.ts";
import { FakeStore } from "../testing/fake-store.ts";

const kills = process.env.SLIPWAY_TEST_LONG === "1" ? 40 : 8;
const main = fileURLToPath(new URL("main.ts", import.meta.url));

let folder: string;
let api: FakeApiserver;
let client: KubeClient;
let store: FakeStore;
let child: ChildProcess | undefined;
let said: string;
let isWriting = false;
let writing: Promise<void> | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "collector-"));
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  store = await FakeStore.start();
  said = "";
  const labels = { "slipway.dev/organization": "o1", "slipway.dev/project": "p1" };
  const metadata = { namespace: "slipway-org-o1", name: "p1", labels };
  await client.create(resources.services, {
    metadata,
    spec: { ports: [{ name: "http", port: 80 }] },
  } as never);
  const named = { name: "fake", cluster: { server: api.url, "insecure-skip-tls-verify": true } };
  const context = { name: "fake", context: { cluster: "fake", user: "fake" } };
  const kubeconfig = {
    clusters: [named],
    contexts: [context],
    users: [{ name: "fake" }],
    "current-context": "fake",
  };
  await writeFile(join(folder, "kubeconfig"), stringify({ apiVersion: "v1", kind: "Config", ...kubeconfig }));
});

afterEach(async () => {
  isWriting = false;
  await writing;
  await kill("SIGKILL");
  await client.close();
  await api.stop();
  await store.stop();
  await rm(folder, { recursive: true, force: true });
});

function start(): void {
  const env = {
    ...process.env,
    KUBECONFIG: join(folder, "kubeconfig"),
    SLIPWAY_ANALYTICS_URL: store.url,
    SLIPWAY_COLLECTOR_POD_LOGS: join(folder, "pod-logs"),
    SLIPWAY_COLLECTOR_STATE: join(folder, "state"),
    SLIPWAY_METRICS_PORT: "0",
    SLIPWAY_LISTEN_ADDRESS: "127.0.0.1",
  };
  child = spawn(process.execPath, [main], { env, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (part: Buffer) => {
      said += String(part);
    });
}

async function kill(signal: NodeJS.Signals): Promise<void> {
  const process = child;
  child = undefined;
  if (!process || process.exitCode !== null || process.signalCode !== null) return;
  const ended = new Promise((resolve) => process.once("exit", resolve));
  process.kill(signal);
  await ended;
}

/** A request as Traefik logs it, which no other one is like. */
const request = (number: number) =>
  JSON.stringify({
    ClientAddr: "10.0.0.1:1",
    DownstreamContentSize: number,
    DownstreamStatus: 200,
    Duration: 1_000_000,
    RequestMethod: "GET",
    RequestPath: `/n/${number}?secret=${number}`,
    ServiceName: "slipway-org-o1-p1-http@kubernetes",
    StartUTC: new Date().toISOString(),
  });

/** Numbers of the requests that the store has, and how often it has each. */
function counted(): Map<number, number> {
  const found = new Map<number, number>();
  for (const row of store.rows) {
    const number = Number((JSON.parse(row) as unknown[])[10]);
    found.set(number, (found.get(number) ?? 0) + 1);
  }
  return found;
}

test("killed at random under traffic, with a store that fails, it counts every request once", async () => {
  const log = new FakeContainerLog(
    join(folder, "pod-logs"),
    "slipway-ingress_traefik-1_uid",
    "traefik",
    1_000,
  );
  await log.start();
  let written = 0;
  isWriting = true;
  const next = () => {
    written += 1;
    return request(written);
  };
  writing = (async () => {
    for (let round = 0; isWriting; round += 1) {
      const lines = Array.from({ length: 5 }, next);
      await log.write([...lines, '{"level":"info","message":"Configuration loaded"}']);
      if (round % 20 === 7) await log.writePieces(next(), 100);
      if (round % 40 === 39) await log.rotate();
      await sleep(10);
    }
  })();
  // A third of what is sent fails: not taken in, or taken in and never answered.
  store.mood = () => (Math.random() < 0.33 ? (Math.random() < 0.5 ? "away" : "silent") : "well");
  for (let round = 0; round < kills; round += 1) {
    const before = store.inserts;
    start();
    // Not before it has begun to work; then at whatever moment.
    await eventually("a batch is sent", () => store.inserts > before, 30_000).catch((error: Error) => {
      throw new Error(`${error.message}, round ${round}: ${said}`);
    });
    await sleep(Math.random() * 500);
    await kill("SIGKILL");
  }
  isWriting = false;
  await writing;
  store.mood = () => "well";
  start();
  const missing = () => {
    const found = counted();
    return Array.from({ length: written }, (_, index) => index + 1).filter((number) => !found.has(number));
  };
  const allIn = () => store.rows.length >= written && missing().length === 0;
  await eventually("all requests are in the store", allIn, 60_000).catch(() => {});
  // What it would send twice, it would send now.
  await kill("SIGTERM");
  expect(store.changed).toEqual([]);
  expect(missing(), said).toEqual([]);
  expect([...counted()].filter(([, times]) => times > 1)).toEqual([]);
  expect(store.rows.join()).not.toContain("secret");
}, 180_000);

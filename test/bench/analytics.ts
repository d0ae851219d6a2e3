import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { insertEvents, migrate, openStore, type Store, summary, type Window } from "@slipway/analytics";
import { startClickHouse, type TestClickHouse } from "../kit/servers/clickhouse.ts";
import { batchesOf, organizationName, projectName, type Traffic } from "./access-events.ts";
import { type EngineRun, wholeTable } from "./analytics-engine.ts";

/**
 * `node test/bench/analytics.ts`: access events into the embedded store, then the API's queries of it, beside the same SQL sent
 * straight to the engine, all in one run. Ends with code 1 when a goal is missed.
 */
const { values } = parseArgs({
  options: {
    events: { type: "string", default: "10000000" },
    projects: { type: "string", default: "100" },
    batch: { type: "string", default: "20000" },
    /** Batches that are sent concurrently. */
    senders: { type: "string", default: "2" },
    rounds: { type: "string", default: "3" },
  },
});
const DAY = 86_400_000;
const GOALS = { ingest: 50_000, summaryMs: 50, toEngine: 1.1, quantile: 0.01 };
/** Projects whose latencies are kept, for the exact quantile. */
const EXACT = 5;

const settings = {
  projects: Number(values.projects),
  batch: Number(values.batch),
  senders: Number(values.senders),
  rounds: Number(values.rounds),
};
const now = Date.now();
const window: Window = { from: now - 7 * DAY, to: now };
const traffic: Traffic = { events: Number(values.events), projects: settings.projects, ...window };

const megabytes = (pid: number | "self"): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

/** Inserts all traffic. @returns seconds, and the latencies of the first projects in ascending order */
async function ingest(store: Store): Promise<{ seconds: number; latencies: number[][] }> {
  const latencies: number[][] = Array.from({ length: EXACT }, () => []);
  const batches = batchesOf(traffic, settings.batch);
  let number = 0;
  const start = performance.now();
  const sender = async (): Promise<void> => {
    for (const events of batches) {
      const id = `bench:${number++}`;
      for (const { project, latencyUs } of events) {
        latencies[Number(project.slice(1))]?.push(latencyUs);
      }
      await insertEvents(store, { id, events });
      if (number % 50 === 0) {
        console.log(`  ${number * settings.batch} events`);
      }
    }
  };
  await Promise.all(Array.from({ length: settings.senders }, sender));
  const seconds = (performance.now() - start) / 1000;
  return { seconds, latencies: latencies.map((list) => list.sort((one, other) => one - other)) };
}

/** Times of one call after the other, in ascending order. */
async function times(calls: number, call: (index: number) => Promise<unknown>): Promise<number[]> {
  const found: number[] = [];
  for (let index = 0; index < calls; index++) {
    const start = performance.now();
    await call(index);
    found.push(performance.now() - start);
  }
  return found.sort((one, other) => one - other);
}

const at = (sorted: number[], level: number): number =>
  sorted[Math.ceil(level * sorted.length) - 1] ?? Number.NaN;
const selectionOf = (index: number, of: Window) => ({
  organization: organizationName(index),
  project: projectName(index),
  window: of,
  filter: {},
});

/** Largest relative error of the reported 95th percentiles. */
async function quantileError(store: Store, latencies: number[][]): Promise<number> {
  let most = 0;
  for (const [index, sorted] of latencies.entries()) {
    const exact = at(sorted, 0.95) / 1000;
    const reported = await summary(store, selectionOf(index, { from: window.from, to: now + 1 }));
    if (reported.requests !== sorted.length) {
      throw new Error(`${reported.requests} requests are reported of ${sorted.length}`);
    }
    most = Math.max(most, Math.abs((reported.p95LatencyMs ?? Number.NaN) - exact) / exact);
  }
  return most;
}

async function bench(server: TestClickHouse): Promise<boolean> {
  const { url, username, passwordFile } = server;
  const place = { database: "bench", cluster: undefined, caFile: undefined };
  const store = openStore({ url, username, passwordFile, ...place }, { timeoutMs: 60_000 });
  try {
    await migrate(store);
    const pid = await server.pid();
    const before = megabytes(pid);
    const { seconds, latencies } = await ingest(store);
    const afterIngest = { store: megabytes(pid), sender: megabytes("self") };
    const rate = traffic.events / seconds;
    const summaries = await times(settings.rounds * settings.projects, (index) =>
      summary(store, selectionOf(index % settings.projects, window)),
    );
    const error = await quantileError(store, latencies);
    const engine = await wholeTable(store, server, settings.rounds);
    console.log(
      `\n${traffic.events} events of ${traffic.projects} projects over 7 days, batches of ${settings.batch}`,
    );
    console.log(`  ingest: ${Math.round(rate)} events/s (goal ${GOALS.ingest})`);
    console.log(
      `  summary of a project over 7 days, ${summaries.length} times: p50 ${at(summaries, 0.5).toFixed(1)} ms, ` +
        `p95 ${at(summaries, 0.95).toFixed(1)} ms (goal ${GOALS.summaryMs})`,
    );
    console.log(
      `  p95 latency off by at most ${(error * 100).toFixed(2)} % (goal ${GOALS.quantile * 100} %)`,
    );
    for (const { what, slipwayMs, engineMs } of engine) {
      console.log(
        `  ${what}: ${slipwayMs.toFixed(1)} ms, the engine alone ${engineMs.toFixed(1)} ms: ` +
          `${(slipwayMs / engineMs).toFixed(2)} x (goal ${GOALS.toEngine})`,
      );
    }
    console.log(
      `  memory: store ${before.toFixed(0)} MiB when empty, ${afterIngest.store.toFixed(0)} after ingest, ` +
        `${megabytes(pid).toFixed(0)} after queries; this process ${afterIngest.sender.toFixed(0)} after ingest`,
    );
    const reaches = ({ slipwayMs, engineMs }: EngineRun): boolean => slipwayMs / engineMs <= GOALS.toEngine;
    return (
      rate >= GOALS.ingest &&
      at(summaries, 0.95) <= GOALS.summaryMs &&
      error <= GOALS.quantile &&
      engine.every(reaches)
    );
  } finally {
    await store.client.close();
  }
}

const server = await startClickHouse();
try {
  process.exitCode = (await bench(server)) ? 0 : 1;
} finally {
  await server.stop();
}

/**
 * Drives the jobrun reconciler through simulated time: `node test/simulator/main.ts [--occurrences N] [--seed N]
 * [--shards N] [--projects N] [--calm] [--long]`. The occurrences are divided among shards with seeds of their own, that run in
 * threads. Prints a summary line, and exits 1 with the history of each violation and what repeats it.
 */

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { recordFigures } from "../../hack/testing/figures.ts";
import type { Shard, ShardMessage } from "./shard.ts";
import type { SimulationResult } from "./simulation.ts";

/** Memory for short-lived objects, of which there are many. */
const YOUNG_MB = 96;
/** Between the seeds of two shards, so that neighbouring seeds have no shard in common. */
const SEED_STEP = 1_000_003;

const { values } = parseArgs({
  options: {
    occurrences: { type: "string" },
    seed: { type: "string" },
    shards: { type: "string", default: "4" },
    projects: { type: "string", default: "100" },
    violations: { type: "string", default: "1" },
    calm: { type: "boolean", default: false },
    long: { type: "boolean", default: false },
    progress: { type: "boolean", default: false },
  },
});

const occurrences = whole("occurrences", values.occurrences ?? (values.long ? "1000000" : "100000"));
const seed = whole("seed", values.seed ?? String(Date.now() % 1_000_000));
const shards = whole("shards", values.shards);
const projects = whole("projects", values.projects);
const maxViolations = whole("violations", values.violations);

const started = performance.now();
const plan: Shard[] = Array.from({ length: shards }, (_, index) => ({
  seed: seed + index * SEED_STEP,
  occurrences: Math.ceil(occurrences / shards),
  projects,
  calm: values.calm,
  maxViolations,
}));
const results: SimulationResult[] = [];
/** Violations, printed once more at the very end: histories are long. */
const faults: string[] = [];
const waiting = [...plan];
await Promise.all(
  Array.from({ length: Math.min(shards, availableParallelism()) }, async () => {
    for (let shard = waiting.shift(); shard; shard = waiting.shift()) {
      await report(shard);
    }
  }),
);
const seconds = (performance.now() - started) / 1_000;

const sum = (of: (result: SimulationResult) => number) =>
  results.reduce((total, result) => total + of(result), 0);
const decided = sum((result) => total(result.decided));
const violations = sum((result) => result.violations.length);
console.log(
  `simulate: seed ${seed}: ${decided} occurrences (${tally((result) => result.decided)}), ${sum(({ runs }) => runs)} runs, ` +
    `${sum(({ rows }) => rows)} charges (${tally((result) => result.charged)}), ${sum(({ kills }) => kills)} kills, ` +
    `${sum(({ freezes }) => freezes)} freezes, ${(sum(({ simulatedMs }) => simulatedMs) / 3_600_000).toFixed(1)} h in ` +
    `${seconds.toFixed(1)} s (${(process.cpuUsage().user / 1e6).toFixed(1)} s of CPU, ${Math.round(decided / seconds)} occurrences/s), ` +
    `${violations} violations`,
);
await recordFigures("simulator", `schedules in simulated time, seed ${seed}`, {
  occurrences: decided,
  runs: sum(({ runs }) => runs),
  charges: sum(({ rows }) => rows),
  "operators killed": sum(({ kills }) => kills),
  "operators frozen": sum(({ freezes }) => freezes),
  "simulated hours": Math.round(sum(({ simulatedMs }) => simulatedMs) / 3_600_000),
  violations,
});
for (const fault of faults) {
  console.log(fault);
}
process.exitCode = faults.length > 0 ? 1 : 0;

/** Runs a shard in a thread and prints its violations, or why it ended without a result. */
async function report(shard: Shard): Promise<void> {
  const calm = values.calm ? " --calm" : "";
  const again = `  again by: --seed ${shard.seed} --shards 1 --occurrences ${shard.occurrences} --projects ${projects}${calm}`;
  const fault = (what: string, history: readonly string[]) => {
    console.log([`\n${what}`, again, ...history.map((line) => `  ${line}`)].join("\n"));
    faults.push(`${what}\n${again}`);
  };
  try {
    const result = await inThread(shard);
    results.push(result);
    for (const { at, project, text, history } of result.violations) {
      fault(`VIOLATION ${new Date(at).toISOString()}, project ${project}: ${text}`, history);
    }
  } catch (error) {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    fault(`FAILURE of a shard: ${String(error)}`, stack.split("\n"));
  }
}

function inThread(workerData: Shard): Promise<SimulationResult> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./shard.ts", import.meta.url), {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB, maxOldGenerationSizeMb: 4_096 },
    });
    worker.on("message", (message: ShardMessage) => {
      if ("result" in message) {
        resolve(message.result);
      } else if (values.progress) {
        console.log(`seed ${workerData.seed}: ${message.decided} decided`);
      }
    });
    worker.once("error", reject);
    worker.once("exit", (code) =>
      reject(new Error(`the thread of seed ${workerData.seed} ended with ${code}`)),
    );
  });
}

/** Counts of all shards by name. */
function tally(of: (result: SimulationResult) => Record<string, number>): string {
  const all: Record<string, number> = {};
  for (const result of results) {
    for (const [name, count] of Object.entries(of(result))) {
      all[name] = (all[name] ?? 0) + count;
    }
  }
  return Object.entries(all)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}

function total(counts: Record<string, number>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}

function whole(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new RangeError(`--${name} is no whole number over 0`);
  }
  return value;
}

import { parseArgs } from "node:util";
import { otherCollector, slipwayCollector } from "./collector-process.ts";
import { type RunResult, run } from "./collector-run.ts";

/**
 * `npm run bench:collector-faults`: what the collector loses and counts twice when it is killed at random moments while its store
 * fails. With `--command` the same faults for another collector that sends OTLP/HTTP as JSON (ADR 14). Loopback only. Ends with code 1
 * when a request was lost or counted twice.
 */
const { values } = parseArgs({
  options: {
    command: { type: "string" },
    seeds: { type: "string", default: "5" },
    "first-seed": { type: "string", default: "1" },
    seconds: { type: "string", default: "45" },
    rate: { type: "string", default: "1000" },
    kills: { type: "string", default: "8" },
    "start-kills": { type: "string", default: "0" },
    sink: { type: "string", default: "failing" },
  },
});
const { command } = values;
const sink = (["failing", "well", "busy"] as const).find((mode) => mode === values.sink);
if (sink === undefined) {
  throw new Error("--sink is failing, well or busy");
}
const open = (url: string) => (command === undefined ? slipwayCollector(url) : otherCollector(command, url));

function print(what: string, result: RunResult): void {
  const { written, lost, takenAgain, countedAgain, changed, peakMiB, cpuSeconds, drainSeconds } = result;
  console.log(
    `${what}: ${written} written, ${lost} lost, ${takenAgain} taken again, ${countedAgain} counted again, ` +
      `${changed} changed batches; ${peakMiB.toFixed(0)} MiB, ${cpuSeconds.toFixed(1)} s of processor, ` +
      `drained in ${drainSeconds.toFixed(1)} s`,
  );
  if (result.lostRanges.length > 0) {
    console.log(`  lost: ${result.lostRanges.slice(0, 20).join(" ")}`);
  }
}

const results: RunResult[] = [];
const first = Number(values["first-seed"]);
for (let seed = first; seed < first + Number(values.seeds); seed += 1) {
  const result = await run(open, {
    seed,
    seconds: Number(values.seconds),
    rate: Number(values.rate),
    kills: Number(values.kills),
    startKills: Number(values["start-kills"]),
    sink,
  });
  print(`seed ${seed}`, result);
  results.push(result);
}
const sum = (of: (result: RunResult) => number): number => results.reduce((total, one) => total + of(one), 0);
const most = (of: (result: RunResult) => number): number => Math.max(...results.map(of));
const all: RunResult = {
  written: sum(({ written }) => written),
  lost: sum(({ lost }) => lost),
  takenAgain: sum(({ takenAgain }) => takenAgain),
  countedAgain: sum(({ countedAgain }) => countedAgain),
  changed: sum(({ changed }) => changed),
  peakMiB: most(({ peakMiB }) => peakMiB),
  cpuSeconds: sum(({ cpuSeconds }) => cpuSeconds),
  drainSeconds: most(({ drainSeconds }) => drainSeconds),
  lostRanges: [],
};
print("all", all);
process.exitCode = all.lost + all.countedAgain + all.changed > 0 ? 1 : 0;

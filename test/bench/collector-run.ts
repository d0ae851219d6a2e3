import { setTimeout as sleep } from "node:timers/promises";
import { FakeContainerLog } from "../kit/analytics/fake-kubelet.ts";
import { traefikLine } from "../kit/analytics/test-collector.ts";
import { Chance } from "../simulator/random.ts";
import { type CollectorProcess, childrenCpuSeconds, peakMiB } from "./collector-process.ts";
import { CollectorSink, type Mood } from "./collector-sink.ts";

export interface RunSettings {
  seed: number;
  seconds: number;
  /** Requests a second. */
  rate: number;
  /** How often the collector is killed. */
  kills: number;
  /** How often it is killed within a moment of its start, after the last request. */
  startKills: number;
  /** Whether the sink fails now and then, never, or until the end. */
  sink: "failing" | "well" | "busy";
}

export interface RunResult {
  written: number;
  lost: number;
  /** Records that the sink took again, of one record each time. */
  takenAgain: number;
  /** The same after deduplication of batches. */
  countedAgain: number;
  /** Batches that came again with other content. */
  changed: number;
  peakMiB: number;
  cpuSeconds: number;
  /** From the last request to the last record. */
  drainSeconds: number;
  /** Numbers of lost records, as ranges. */
  lostRanges: string[];
}

const TICK_MS = 10;
/** Files of a container that the kubelet keeps: none is removed, which would be its loss and no collector's. */
const KEPT_FILES = 1_000;
/** Longer than a start takes. */
const START_MS = 1_000;
const FAULTS: readonly Mood[] = ["away", "busy", "silent", "hanging"];
/** The collector has nothing more to send when so long nothing came, but at the latest at the other. */
const QUIET_MS = 25_000;
const MAX_DRAIN_MS = 90_000;

/** One run. Everything that goes wrong follows from the seed; what the processes do meanwhile does not. */
export async function run(
  open: (sinkUrl: string) => Promise<CollectorProcess>,
  settings: RunSettings,
): Promise<RunResult> {
  const sink = await CollectorSink.start();
  const collector = await open(sink.url);
  const cpuBefore = childrenCpuSeconds();
  let peak = 0;
  const sampling = setInterval(() => {
    peak = Math.max(peak, peakMiB(collector.pid));
  }, 100);
  try {
    const log = new FakeContainerLog(
      collector.podLogs,
      "slipway-ingress_traefik-1_uid",
      "traefik",
      KEPT_FILES,
    );
    await log.start();
    collector.start();
    const ending = AbortSignal.timeout(settings.seconds * 1000);
    const [written] = await Promise.all([
      write(log, settings, ending),
      failSink(sink, settings, ending),
      killAtRandom(collector, settings),
    ]);
    await killWhileStarting(collector, settings);
    sink.mood = "well";
    const drainSeconds = (await drain(sink, written)) / 1000;
    peak = Math.max(peak, peakMiB(collector.pid));
    // What it would send again, it sends now.
    await collector.kill("SIGTERM");
    const cpuSeconds = childrenCpuSeconds() - cpuBefore;
    return { ...count(sink, written), drainSeconds, peakMiB: peak, cpuSeconds };
  } finally {
    clearInterval(sampling);
    await collector.close();
    await sink.stop();
  }
}

/** Requests at a steady rate, in files that are rotated. @returns how many */
async function write(
  log: FakeContainerLog,
  { seed, rate }: RunSettings,
  ending: AbortSignal,
): Promise<number> {
  const chance = new Chance(seed, "log");
  const start = performance.now();
  let rotateAt = chance.between(2_000, 6_000);
  let written = 0;
  while (!ending.aborted) {
    const now = performance.now() - start;
    const due = Math.floor((now * rate) / 1000);
    if (due > written) {
      await log.write(Array.from({ length: due - written }, (_, index) => traefikLine(written + index + 1)));
      written = due;
    }
    if (now >= rotateAt) {
      await log.rotate();
      rotateAt = now + chance.between(2_000, 6_000);
    }
    await sleep(TICK_MS);
  }
  return written;
}

async function failSink(
  sink: CollectorSink,
  { seed, sink: mode }: RunSettings,
  ending: AbortSignal,
): Promise<void> {
  const chance = new Chance(seed, "sink");
  sink.mood = mode === "busy" ? "busy" : "well";
  while (mode === "failing" && !ending.aborted) {
    await pause(chance.between(1_000, 5_000), ending);
    sink.mood = chance.pick(FAULTS);
    await pause(chance.between(500, 5_000), ending);
    sink.mood = "well";
  }
}

/** Kills at moments spread evenly over the run, also of a process that has just started, and starts again within a second. */
async function killAtRandom(
  collector: CollectorProcess,
  { seed, kills, seconds }: RunSettings,
): Promise<void> {
  const chance = new Chance(seed, "kills");
  const moments = Array.from({ length: kills }, () => chance.between(0, seconds * 1000)).sort(
    (a, b) => a - b,
  );
  const start = performance.now();
  for (const moment of moments) {
    const down = chance.between(50, 1_000);
    await sleep(Math.max(0, moment - (performance.now() - start)));
    await collector.kill("SIGKILL");
    await sleep(down);
    collector.start();
  }
}

async function killWhileStarting(
  collector: CollectorProcess,
  { seed, startKills }: RunSettings,
): Promise<void> {
  const chance = new Chance(seed, "start kills");
  for (let left = startKills; left > 0; left -= 1) {
    await collector.kill("SIGKILL");
    collector.start();
    await sleep(chance.between(0, START_MS));
  }
}

/** Waits until all records are there, or no more come. @returns milliseconds until the last came */
async function drain(sink: CollectorSink, written: number): Promise<number> {
  const start = performance.now();
  let size = sink.size;
  let last = start;
  for (let now = start; now - last < QUIET_MS && now - start < MAX_DRAIN_MS; now = performance.now()) {
    if (size >= written) {
      break;
    }
    await sleep(50);
    if (sink.size > size) {
      [size, last] = [sink.size, performance.now()];
    }
  }
  return last - start;
}

function count(sink: CollectorSink, written: number) {
  const result = { written, lost: 0, takenAgain: 0, countedAgain: 0, changed: sink.changed };
  const lostRanges: string[] = [];
  let first: number | undefined;
  for (let number = 1; number <= written + 1; number += 1) {
    const { taken, counted } = sink.of(number);
    const isLost = taken === 0 && number <= written;
    if (isLost) {
      first ??= number;
      result.lost += 1;
    } else if (first !== undefined) {
      lostRanges.push(`${first}-${number - 1}`);
      first = undefined;
    }
    result.takenAgain += Math.max(0, taken - 1);
    result.countedAgain += Math.max(0, counted - 1);
  }
  return { ...result, lostRanges };
}

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }).catch(() => undefined);

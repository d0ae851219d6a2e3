import { readFileSync } from "node:fs";
import autocannon from "autocannon";

export interface Target {
  name: string;
  url: string;
  headers?: Record<string, string>;
  /** Client certificate and CA of a TLS server. */
  tls?: { cert: Buffer; key: Buffer; ca: Buffer };
  /** Process whose processor time is counted. */
  pid?: number;
  /** Where it shows its own metrics, with the time of its garbage collector. */
  metricsUrl?: string;
}

export interface Measurement {
  requestsPerSecond: number;
  p50: number;
  p99: number;
  /** Processor time of the server per request, in microseconds: what other work on the machine does not change. */
  cpuMicroseconds: number;
  /** The garbage collector's part of that, from 0 to 1; NaN for a server that does not show it. */
  collectorShare: number;
}

export interface LoadOptions {
  connections: number;
  seconds: number;
}

/** Loads one target on loopback. @throws Error when an answer was not 2xx, since then nothing was measured */
async function load(target: Target, { connections, seconds }: LoadOptions): Promise<Measurement> {
  if (!/^https?:\/\/127\.0\.0\.1:/.test(target.url)) {
    throw new Error("only 127.0.0.1 is loaded");
  }
  const before = target.pid === undefined ? 0 : cpuSeconds(target.pid);
  const collectedBefore = await collectorSeconds(target);
  const result = await autocannon({
    url: target.url,
    headers: target.headers,
    connections,
    duration: seconds,
    ...(target.tls ? { tlsOptions: { ...target.tls, rejectUnauthorized: true } } : {}),
  });
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${target.name}: ${result.non2xx} answers were not 2xx, ${result.errors} errors`);
  }
  const spent = target.pid === undefined ? Number.NaN : cpuSeconds(target.pid) - before;
  return {
    cpuMicroseconds: (spent / result.requests.total) * 1e6,
    collectorShare: ((await collectorSeconds(target)) - collectedBefore) / spent,
    requestsPerSecond: result.requests.average,
    p50: result.latency.p50,
    p99: result.latency.p99,
  };
}

/** Seconds that a target's garbage collector has taken; some of its work is beside the main thread. */
async function collectorSeconds({ metricsUrl }: Target): Promise<number> {
  if (metricsUrl === undefined) {
    return Number.NaN;
  }
  const text = await (await fetch(metricsUrl)).text();
  const sums = text.matchAll(/^nodejs_gc_duration_seconds_sum\{.*\} (\S+)$/gm);
  return [...sums].reduce((all, [, seconds]) => all + Number(seconds), 0);
}

/** Clock ticks a second of /proc: fixed on Linux. */
const TICKS = 100;

/** Processor time that a process has used. */
export function cpuSeconds(pid: number): number {
  // The second field, the name, may contain spaces: fields are counted after its parenthesis.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/**
 * One short warm-up each, then rounds in which every target has its turn: what disturbs the machine disturbs all.
 * @returns the medians of each target
 */
export async function takeTurns(
  targets: readonly Target[],
  rounds: number,
  options: LoadOptions,
): Promise<Measurement[]> {
  for (const target of targets) {
    await load(target, { ...options, seconds: 2 });
  }
  const all = targets.map((): Measurement[] => []);
  for (let round = 1; round <= rounds; round += 1) {
    for (const [index, target] of targets.entries()) {
      const measured = await load(target, options);
      all[index]?.push(measured);
      console.log(`round ${round}: ${target.name} ${Math.round(measured.requestsPerSecond)} requests/s`);
    }
  }
  return all.map((measured) => ({
    requestsPerSecond: median(measured.map((one) => one.requestsPerSecond)),
    cpuMicroseconds: median(measured.map((one) => one.cpuMicroseconds)),
    collectorShare: median(measured.map((one) => one.collectorShare)),
    p50: median(measured.map((one) => one.p50)),
    p99: median(measured.map((one) => one.p99)),
  }));
}

/** The middle one of an odd number of values. */
function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

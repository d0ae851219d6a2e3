import { recordFigures } from "../../hack/testing/figures.ts";
import type { Measurement } from "./load.ts";

/**
 * What the design requires of `GET /v1/project/:id`: a multiple of the other's requests per second and of its processor time, and of
 * the first number of projects a multiple of kube-apiserver's.
 */
const GOALS = { bareFastify: 0.85, kubeApiserver: 10 };

export interface Result {
  /** Projects in memory. */
  projects: number;
  /** Slipway, bare Fastify; kube-apiserver where it was measured. */
  measured: readonly [Measurement, Measurement, Measurement?];
  /** Resident memory of the API server in MiB, before the load and after it. */
  memory: { before: number; loaded: number };
}

/** Prints the results. @param what how it was measured @returns whether every goal is reached */
export async function report(what: string, results: readonly Result[]): Promise<boolean> {
  console.log(`\n${what}`);
  let isReached = true;
  for (const { projects, measured, memory } of results) {
    const [slipway, bare, kubeApiserver] = measured;
    line(`slipway, ${projects} projects`, slipway);
    line("bare Fastify, same rounds", bare);
    const byRate = slipway.requestsPerSecond / bare.requestsPerSecond;
    const byCpu = bare.cpuMicroseconds / slipway.cpuMicroseconds;
    console.log(
      `  to bare Fastify: ${byRate.toFixed(2)} x by rate, ${byCpu.toFixed(2)} x by processor time; goal ${GOALS.bareFastify}`,
    );
    console.log(
      `  memory of the API server: ${memory.before.toFixed(0)} MiB, ${memory.loaded.toFixed(0)} after load`,
    );
    await recordFigures("benchmarks", `reads of a project, ${projects} in memory`, {
      "x bare Fastify by requests a second": byRate,
      "x by processor time": byCpu,
      ...(kubeApiserver && {
        "x kube-apiserver": slipway.requestsPerSecond / kubeApiserver.requestsPerSecond,
      }),
      "MiB of memory after load": Math.round(memory.loaded),
    });
    isReached &&= byRate >= GOALS.bareFastify && byCpu >= GOALS.bareFastify;
    if (kubeApiserver) {
      line("kube-apiserver", kubeApiserver);
      const toKube = slipway.requestsPerSecond / kubeApiserver.requestsPerSecond;
      console.log(`  to kube-apiserver: ${toKube.toFixed(1)} x; goal ${GOALS.kubeApiserver}`);
      isReached &&= toKube >= GOALS.kubeApiserver;
    }
  }
  return isReached;
}

/** Prints one measurement. */
export function line(name: string, measured: Measurement): void {
  const { requestsPerSecond, p50, p99, cpuMicroseconds, collectorShare } = measured;
  const cpu = Number.isNaN(cpuMicroseconds)
    ? ""
    : `, ${cpuMicroseconds.toFixed(1)} us of processor a request`;
  const collector = Number.isNaN(collectorShare)
    ? ""
    : `, ${(collectorShare * 100).toFixed(1)} % of it the garbage collector's`;
  const rate = `${Math.round(requestsPerSecond)} requests/s`;
  console.log(`  ${name.padEnd(26)} ${rate}, p50 ${p50} ms, p99 ${p99} ms${cpu}${collector}`);
}

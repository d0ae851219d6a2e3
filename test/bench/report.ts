import type { Measurement } from "./load.ts";

/** What the design requires of `GET /v1/project/:id`, as a multiple of the other's requests per second. */
const GOALS = { bareFastify: 0.8, kubeApiserver: 10 };

export interface Results {
  /** How it was measured. */
  what: string;
  /** Slipway, bare Fastify, kube-apiserver. */
  at200: readonly [Measurement, Measurement, Measurement];
  /** Slipway, bare Fastify. */
  at2000: readonly [Measurement, Measurement];
  /** Resident memory of the API server in MiB: before any load, after it, and after it with 2,000 projects. */
  memory: { before: number; at200: number; at2000: number };
}

/** Prints the results. @returns whether both goals are reached at 200 projects */
export function report({ what, at200, at2000, memory }: Results): boolean {
  const [slipway, bare, kubeApiserver] = at200;
  const [slipway2000, bare2000] = at2000;
  console.log(`\n${what}`);
  line("slipway, 200 projects", slipway);
  line("bare Fastify", bare);
  line("kube-apiserver", kubeApiserver);
  line("slipway, 2,000 projects", slipway2000);
  line("bare Fastify, same rounds", bare2000);
  const toBare = slipway.requestsPerSecond / bare.requestsPerSecond;
  const toBare2000 = slipway2000.requestsPerSecond / bare2000.requestsPerSecond;
  const toKube = slipway.requestsPerSecond / kubeApiserver.requestsPerSecond;
  console.log(`  to bare Fastify: ${times(toBare, toBare2000)}; goal ${GOALS.bareFastify}`);
  const byCpu = bare.cpuMicroseconds / slipway.cpuMicroseconds;
  const byCpu2000 = bare2000.cpuMicroseconds / slipway2000.cpuMicroseconds;
  console.log(`  to bare Fastify by processor time: ${times(byCpu, byCpu2000)}`);
  console.log(`  to kube-apiserver: ${toKube.toFixed(1)} x; goal ${GOALS.kubeApiserver}`);
  console.log(
    `  memory of the API server: ${memory.before.toFixed(0)} MiB with 200 projects, ` +
      `${memory.at200.toFixed(0)} after load, ${memory.at2000.toFixed(0)} after load with 2,000`,
  );
  return toBare >= GOALS.bareFastify && toKube >= GOALS.kubeApiserver;
}

const times = (at200: number, at2000: number): string =>
  `${at200.toFixed(2)} x at 200 projects, ${at2000.toFixed(2)} x at 2,000`;

function line(name: string, { requestsPerSecond, p50, p99, cpuMicroseconds }: Measurement): void {
  const cpu = Number.isNaN(cpuMicroseconds)
    ? ""
    : `, ${cpuMicroseconds.toFixed(1)} us of processor a request`;
  console.log(
    `  ${name.padEnd(26)} ${Math.round(requestsPerSecond)} requests/s, p50 ${p50} ms, p99 ${p99} ms${cpu}`,
  );
}

import autocannon from "autocannon";

export interface Target {
  name: string;
  url: string;
  headers?: Record<string, string>;
  /** Client certificate and CA of a TLS server. */
  tls?: { cert: Buffer; key: Buffer; ca: Buffer };
}

export interface Measurement {
  requestsPerSecond: number;
  p50: number;
  p99: number;
}

export interface LoadOptions {
  connections: number;
  seconds: number;
}

/** Loads one target on loopback. @throws Error when an answer was not 2xx, since then nothing was measured */
export async function load(target: Target, { connections, seconds }: LoadOptions): Promise<Measurement> {
  if (!/^https?:\/\/127\.0\.0\.1:/.test(target.url)) throw new Error("only 127.0.0.1 is loaded");
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
  return {
    requestsPerSecond: result.requests.average,
    p50: result.latency.p50,
    p99: result.latency.p99,
  };
}

/** The middle one of an odd number of values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** What the victim saw, request by request, and what that comes to. Pure, but for the clock of `openLoop`. */
import { setTimeout as sleep } from "node:timers/promises";
import { spreadOf } from "../bench/job-audit.ts";

/** Kinds of what the victim does. */
export const kinds = ["app", "read", "search", "write", "row"] as const;
export type Kind = (typeof kinds)[number];

/** One request. Milliseconds of this process's monotonic clock; latency counts from when the request was due. */
export interface Sample {
  readonly kind: Kind;
  readonly due: number;
  readonly latency: number;
  /** Why it failed; undefined when it did not. */
  readonly failure?: string;
}

/** What one kind of requests came to. Latencies in milliseconds, of those that did not fail. */
export interface Seen {
  readonly sent: number;
  readonly failed: number;
  /** Each different failure with how often it was, the most frequent first. */
  readonly failures: readonly string[];
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** All requests of the victim: those that have ended, and those that have not, by when they were due. */
export interface Load {
  readonly samples: Sample[];
  readonly pending: Set<{ readonly due: number }>;
}

/** A stretch of time, in milliseconds of the monotonic clock. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

export function summarize(samples: readonly Sample[], kind: Kind, { from, to }: Window): Seen {
  const own = samples.filter((one) => one.kind === kind && one.due >= from && one.due < to);
  const failures = new Map<string, number>();
  for (const { failure } of own) {
    if (failure !== undefined) {
      failures.set(failure, (failures.get(failure) ?? 0) + 1);
    }
  }
  const spread = spreadOf(own.filter(({ failure }) => failure === undefined).map(({ latency }) => latency));
  return {
    sent: own.length,
    failed: own.filter(({ failure }) => failure !== undefined).length,
    failures: [...failures].toSorted((a, b) => b[1] - a[1]).map(([why, count]) => `${count} x ${why}`),
    p50: spread.p50,
    p99: spread.p99,
    max: spread.max,
  };
}

/**
 * Calls `send` at a fixed rate whether or not earlier calls have ended, so that a slow server meets a queue as it would in
 * life, and keeps a sample of each. Ends with the signal, once every call has ended.
 * @param rate calls a second
 * @param send throws with the reason when a call fails
 */
export async function openLoop(
  kind: Kind,
  rate: number,
  send: (index: number) => Promise<void>,
  load: Load,
  signal: AbortSignal,
): Promise<void> {
  const running = new Set<Promise<void>>();
  const start = performance.now();
  for (let index = 0; !signal.aborted; index += 1) {
    const due = start + (index * 1_000) / rate;
    const wait = due - performance.now();
    if (wait > 0) {
      await sleep(wait, undefined, { signal }).catch(() => undefined);
    }
    if (signal.aborted) {
      break;
    }
    const request = { due };
    load.pending.add(request);
    const one = send(index)
      .then(
        () => undefined,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      )
      .then((failure) => {
        load.samples.push({ kind, due, latency: performance.now() - due, failure });
        load.pending.delete(request);
        running.delete(one);
      });
    running.add(one);
  }
  await Promise.all(running);
}

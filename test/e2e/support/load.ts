import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { stack } from "./stack.ts";

/** One request of a mix. */
export interface MixedRequest {
  /** Groups requests in the report. */
  readonly kind: string;
  readonly method: "GET" | "PATCH" | "POST" | "DELETE";
  readonly path: string;
  readonly apiKey?: string;
  readonly body?: unknown;
}

/** A request that was not answered 200. Times are milliseconds of this process's monotonic clock. */
export interface FailedRequest {
  readonly kind: string;
  readonly status: number;
  /** The start of the answer, or why there is none: it names which part of the platform refused. */
  readonly answer: string;
  readonly sentAt: number;
  readonly endedAt: number;
}

export interface LoadReport {
  readonly sent: number;
  /** How often each status was answered, by kind; 0 is a request without an answer. */
  readonly statuses: Readonly<Record<string, Readonly<Record<number, number>>>>;
  /** Requests with another answer than 200, or none. */
  readonly failed: readonly FailedRequest[];
  /** Milliseconds from when a GET was due until its answer was there. */
  readonly reads: { readonly p50: number; readonly p99: number; readonly max: number };
}

/**
 * Sends requests to the API on loopback at a fixed rate, without waiting for answers, so that a slow server meets a queue
 * as it would in life. Nothing is retried.
 */
export async function mixedLoad(options: {
  rate: number;
  seconds: number;
  next: (index: number) => MixedRequest;
}): Promise<LoadReport> {
  const { rate, seconds, next } = options;
  const url = new URL(stack.url);
  if (url.hostname !== "127.0.0.1") {
    throw new Error("only 127.0.0.1 is loaded");
  }
  const pool = new Pool(url.origin, { connections: 64 });
  const statuses: Record<string, Record<number, number>> = {};
  const reads: number[] = [];
  const failed: FailedRequest[] = [];
  const open = new Set<Promise<void>>();
  const start = performance.now();

  const one = async ({ kind, method, path, apiKey, body }: MixedRequest, due: number): Promise<void> => {
    const sentAt = performance.now();
    const { status, answer } = await send(pool, { method, path, apiKey, body });
    if (status !== 200) {
      failed.push({ kind, status, answer, sentAt, endedAt: performance.now() });
    }
    if (method === "GET") {
      reads.push(performance.now() - due);
    }
    const counts = statuses[kind] ?? {};
    statuses[kind] = { ...counts, [status]: (counts[status] ?? 0) + 1 };
  };
  for (let index = 0; index < rate * seconds; index += 1) {
    const due = start + (index * 1000) / rate;
    const wait = due - performance.now();
    if (wait > 1) {
      await sleep(wait);
    }
    const request = one(next(index), due).finally(() => open.delete(request));
    open.add(request);
  }
  await Promise.all(open);
  await pool.close();
  reads.sort((a, b) => a - b);
  const at = (share: number) => Math.round((reads[Math.floor(reads.length * share)] ?? Number.NaN) * 10) / 10;
  return { sent: rate * seconds, statuses, failed, reads: { p50: at(0.5), p99: at(0.99), max: at(0.99999) } };
}

type Answer = Pick<FailedRequest, "status" | "answer">;

async function send(pool: Pool, request: Omit<MixedRequest, "kind">): Promise<Answer> {
  const { method, path, apiKey, body } = request;
  try {
    const answer = await pool.request({
      method,
      path,
      headers: {
        ...(apiKey === undefined ? {} : { "x-api-key": apiKey }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (answer.statusCode === 200) {
      await answer.body.dump();
      return { status: 200, answer: "" };
    }
    return { status: answer.statusCode, answer: (await answer.body.text()).slice(0, 200) };
  } catch (error) {
    return { status: 0, answer: String(error) };
  }
}

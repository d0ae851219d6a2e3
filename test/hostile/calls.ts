import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { type Answers, Tally } from "./attack.ts";

/** One call of an attacker. */
export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON unless it is text already. */
  readonly body?: unknown;
}

export interface CallsOptions {
  readonly url: string;
  /** Concurrently. */
  readonly concurrency: number;
  /** Calls in all. */
  readonly count: number;
  /** Milliseconds that each of them rests after an answer, `0`. */
  readonly restMs?: number;
  readonly next: (index: number) => Call;
  /** Sees each answer; for an attack whose calls follow from answers. */
  readonly seen?: (call: Call, status: number, body: string) => void;
}

const TIMEOUT_MS = 15_000;

/** Calls the API again and again, and counts the answers by status and code. Ends with the signal. */
export async function calls(options: CallsOptions, signal: AbortSignal): Promise<Answers> {
  const { origin, hostname } = new URL(options.url);
  if (hostname !== "127.0.0.1") {
    throw new Error("only 127.0.0.1 is attacked");
  }
  const pool = new Pool(origin, {
    connections: options.concurrency,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  });
  const tally = new Tally();
  let index = 0;
  const worker = async (): Promise<void> => {
    while (!signal.aborted && index < options.count) {
      const one = options.next(index);
      index += 1;
      try {
        const { status, body } = await send(pool, one, signal);
        tally.add(answerOf(status, body));
        options.seen?.(one, status, body);
      } catch {
        if (signal.aborted) {
          break;
        }
        tally.add("no answer");
      }
      await sleep(options.restMs ?? 0);
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, worker));
  await pool.destroy();
  return tally.answers();
}

async function send(pool: Pool, { method, path, headers, body }: Call, signal: AbortSignal) {
  const answer = await pool.request({
    method,
    path,
    signal,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: answer.statusCode, body: await answer.body.text() };
}

/** `403 NAME_OF_THE_CODE`, or the status alone. */
function answerOf(status: number, body: string): string {
  const code = /"code":"([A-Z0-9_]+)"/.exec(body)?.[1];
  return code === undefined ? String(status) : `${status} ${code}`;
}

import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { failures } from "../errors/catalog.ts";
import type { Answer } from "./route.ts";

/** Answers that go on for as long as something happens: `text/event-stream`. */

export interface StreamLimits {
  /** Streams of one process. */
  most: number;
  /** Of them, those of one organization. */
  mostOfOne: number;
  /** After so long without an event a comment is sent, so that nobody between takes the connection for dead. */
  quietMs: number;
  /** After so long a stream ends; the client goes on with another one. */
  longestMs: number;
  /** How long streams may take to send what they have when they are ended; who does not read is cut off then. */
  graceMs: number;
}

const LIMITS: StreamLimits = {
  most: 64,
  mostOfOne: 32,
  quietMs: 15_000,
  longestMs: 3_600_000,
  graceMs: 2_000,
};

const QUIET = ": still here\n\n";

/** One event, as the HTML standard writes it. */
export const eventText = (name: string, data: object, id?: number | bigint): string =>
  `${id === undefined ? "" : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** What a route answers with a stream of events. */
export const eventAnswer = (stream: Readable): Answer => ({
  status: 200,
  headers: {
    "cache-control": "no-store",
    "content-type": "text/event-stream; charset=utf-8",
    // Proxies that gather answers would hold events back.
    "x-accel-buffering": "no",
  },
  stream,
});

/** Makes the events of one stream; it ends, and lets go of all it holds, when the signal aborts. */
export type EventSource = (signal: AbortSignal) => AsyncGenerator<string, void>;

/** The streams of a process. */
export class EventStreams {
  readonly #limits: StreamLimits;
  readonly #end = new AbortController();
  readonly #open = new Map<Readable, string>();

  constructor(limits: Partial<StreamLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Events are made as fast as the client reads them. A source that fails ends its stream: the client goes on with another one.
   * @param organization whose it is
   * @throws Failure 503 when there are too many
   */
  open(organization: string, source: EventSource): Readable {
    const { most, mostOfOne, quietMs, longestMs, graceMs } = this.#limits;
    const ofOne = [...this.#open.values()].filter((owner) => owner === organization).length;
    if (this.#open.size >= most || ofOne >= mostOfOne || this.#end.signal.aborted)
      throw failures.serverBusy();
    const closed = new AbortController();
    const events = source(AbortSignal.any([closed.signal, this.#end.signal]));
    let next: Promise<IteratorResult<string, void>> | undefined;
    const stream = new Readable({
      read: () => {
        next ??= events.next();
        void settled(next, quietMs).then((result) => {
          if (result === undefined) return stream.push(QUIET);
          next = undefined;
          return stream.push(result.done ? null : result.value);
        });
      },
      // What is under way must not hold the place of a client that has gone.
      destroy: (error, done) => {
        closed.abort();
        void events.return().catch(() => undefined);
        done(error);
      },
    });
    const timers = [
      setTimeout(() => closed.abort(), longestMs),
      setTimeout(() => stream.destroy(), longestMs + graceMs),
    ];
    this.#open.set(stream, organization);
    stream.once("close", () => {
      for (const timer of timers) clearTimeout(timer);
      this.#open.delete(stream);
    });
    return stream;
  }

  /** Ends all of them, so that the process can end; there are no new ones from then on. */
  async endAll(): Promise<void> {
    this.#end.abort();
    const closed = [...this.#open.keys()].map((stream) => new Promise((done) => stream.once("close", done)));
    const timer = new AbortController();
    const grace = sleep(this.#limits.graceMs, undefined, { signal: timer.signal }).catch(() => undefined);
    await Promise.race([Promise.all(closed), grace]);
    timer.abort();
    for (const stream of this.#open.keys()) stream.destroy();
  }
}

/** The next event, undefined when none comes in time; the end, when there is none any more or none can be made. */
async function settled(
  next: Promise<IteratorResult<string, void>>,
  quietMs: number,
): Promise<IteratorResult<string, void> | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const quiet = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), quietMs);
  });
  try {
    return await Promise.race([next, quiet]);
  } catch {
    return { done: true, value: undefined };
  } finally {
    clearTimeout(timer);
  }
}

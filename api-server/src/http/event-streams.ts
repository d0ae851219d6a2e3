import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { failures } from "../errors/catalog.ts";
import type { Answer } from "./exchange.ts";

/** Server-sent events: `text/event-stream`. */

export interface StreamLimits {
  /** Streams of one process. Beyond it the oldest stream of the organization with most of them is closed for one with fewer. */
  maxStreams: number;
  /** Streams of one organization. */
  maxStreamsPerOrganization: number;
  /** After this time without an event a comment is sent, so that no proxy closes the connection as idle. */
  heartbeatMs: number;
  /** How often it is checked that the caller may still read. */
  recheckMs: number;
  /** After this time a stream ends; the client reconnects. */
  maxDurationMs: number;
  /** How long an ended stream may take to send what it has; then its connection is closed. */
  graceMs: number;
}

const LIMITS: StreamLimits = {
  maxStreams: 256,
  maxStreamsPerOrganization: 32,
  heartbeatMs: 15_000,
  recheckMs: 1_000,
  maxDurationMs: 3_600_000,
  graceMs: 2_000,
};

const HEARTBEAT = ": still here\n\n";

/** One event, as the HTML standard writes it. */
export const eventText = (name: string, data: object, id?: number | bigint): string =>
  `${id === undefined ? "" : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** The answer of a route with a stream of events. */
export const eventAnswer = (stream: Readable): Answer => ({
  status: 200,
  headers: {
    "cache-control": "no-store",
    "content-type": "text/event-stream; charset=utf-8",
    // Proxies that buffer answers would delay events.
    "x-accel-buffering": "no",
  },
  stream,
});

/** Generates the events of one stream; it ends, and releases its resources, when the signal aborts. */
export type EventSource = (signal: AbortSignal) => AsyncGenerator<string, void>;

/** The caller and the organization of a stream. */
export interface StreamCaller {
  organizationId: string;
  /** Rejects once the caller may read no more: its credential, membership or grant is deleted, or its token has expired. */
  recheck(): Promise<void>;
}

interface OpenStream {
  organizationId: string;
  /** It was ended, and its client has time to read what is left: it no longer counts. */
  readonly isEnding: boolean;
  /** Ends it as its client expects: without an event `end`, so that the client resumes it. */
  end(): void;
}

/** The streams of a process. */
export class EventStreams {
  readonly #limits: StreamLimits;
  readonly #end = new AbortController();
  /** In the order in which they were opened. */
  readonly #open = new Map<Readable, OpenStream>();

  constructor(limits: Partial<StreamLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Events are generated as fast as the client reads them. A source that fails ends its stream: the client reconnects.
   * @throws Failure 503 when the caller's organization has too many
   */
  open({ organizationId, recheck }: StreamCaller, source: EventSource): Readable {
    const { heartbeatMs, recheckMs, maxDurationMs, graceMs } = this.#limits;
    this.#makeRoom(organizationId);
    const closed = new AbortController();
    const events = source(AbortSignal.any([closed.signal, this.#end.signal]));
    let next: Promise<IteratorResult<string, void>> | undefined;
    const stream = new Readable({
      read: () => {
        next ??= events.next();
        void nextEvent(next, heartbeatMs).then((result) => {
          if (result === undefined) {
            return stream.push(HEARTBEAT);
          }
          next = undefined;
          return stream.push(result.done ? null : result.value);
        });
      },
      // A pending event must not count for a client that has disconnected.
      destroy: (error, done) => {
        closed.abort();
        void events.return().catch(() => undefined);
        done(error);
      },
    });
    let cutOff: NodeJS.Timeout | undefined;
    const end = (): void => {
      closed.abort();
      // A client that does not read what is left is not waited for.
      cutOff ??= setTimeout(() => stream.destroy(), graceMs);
    };
    const longest = setTimeout(end, maxDurationMs);
    const rechecks = setInterval(() => void recheck().catch(end), recheckMs);
    this.#open.set(stream, {
      organizationId,
      end,
      get isEnding() {
        return closed.signal.aborted;
      },
    });
    stream.once("close", () => {
      clearTimeout(longest);
      clearInterval(rechecks);
      clearTimeout(cutOff);
      this.#open.delete(stream);
    });
    return stream;
  }

  /** @throws Failure 503 when the organization has its maximum, or no other has more */
  #makeRoom(organizationId: string): void {
    const { maxStreams, maxStreamsPerOrganization } = this.#limits;
    const all = [...this.#open.values()];
    const own = all.filter((stream) => stream.organizationId === organizationId);
    if (own.length >= maxStreamsPerOrganization || this.#end.signal.aborted) {
      throw failures.serverBusy();
    }
    const staying = all.filter(({ isEnding }) => !isEnding);
    if (staying.length < maxStreams) {
      return;
    }
    const byOwner = Map.groupBy(staying, (stream) => stream.organizationId);
    const [largest = []] = [...byOwner.values()].sort((a, b) => b.length - a.length);
    if (largest.length <= (byOwner.get(organizationId)?.length ?? 0) + 1) {
      throw failures.serverBusy();
    }
    largest[0]?.end();
  }

  /** Ends all of them, so that the process can end; there are no new ones from then on. */
  async endAll(): Promise<void> {
    this.#end.abort();
    const closed = [...this.#open.keys()].map((stream) => new Promise((done) => stream.once("close", done)));
    const timer = new AbortController();
    const grace = sleep(this.#limits.graceMs, undefined, { signal: timer.signal }).catch(() => undefined);
    await Promise.race([Promise.all(closed), grace]);
    timer.abort();
    for (const stream of this.#open.keys()) {
      stream.destroy();
    }
  }
}

/** The next event, undefined after the heartbeat interval; the end, when the source has ended or failed. */
async function nextEvent(
  next: Promise<IteratorResult<string, void>>,
  heartbeatMs: number,
): Promise<IteratorResult<string, void> | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), heartbeatMs);
  });
  try {
    return await Promise.race([next, timeout]);
  } catch {
    return { done: true, value: undefined };
  } finally {
    clearTimeout(timer);
  }
}

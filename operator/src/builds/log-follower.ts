/** Brings the output of build pods into the ledger while they run, and whole, also after a restart. */

import type { Readable } from "node:stream";
import { type Container, containers } from "@slipway/builder/contract";
import { type KubeClient, KubeError, type Transport } from "@slipway/controller-runtime";
import type { BuildLogChunk } from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { LogLines } from "./log-lines.ts";

/** Which container's log it is, and of which build. */
export interface LogSource {
  organizationId: string;
  projectId: string;
  buildId: string;
  namespace: string;
  podName: string;
  podUid: string;
  attempt: number;
}

/** Writes lines into the ledger; those that stand there stay as they are. Throws when it cannot. */
export type StoreBuildLog = (
  build: Pick<LogSource, "organizationId" | "projectId" | "buildId">,
  lines: readonly BuildLogChunk[],
) => Promise<unknown>;

export interface LogFollowerOptions {
  client: Pick<KubeClient, "transport">;
  store: StoreBuildLog;
  clock: Clock;
  log: Logger;
  /** Called when a container's log stands in the ledger. */
  onKept: (source: LogSource) => void;
}

/** Lines wait so long for others, so that the ledger is not written to for each. */
const BATCH_MS = 200;
const BATCH_LINES = 500;
/** A log that cannot be read or stored is begun again after so long, in milliseconds. */
const PAUSE_MS = 1_000;
const OPEN_MS = 5_000;
/** A log of a container that has ended is given up when it could not be had for so long. */
const GIVE_UP_MS = 60_000;

type BuildOfLog = Pick<LogSource, "organizationId" | "buildId">;

interface Following {
  source: LogSource;
  kept: boolean;
  /** The container has said that it writes no more, and all of it is stored: nothing is left to read once it has ended. */
  isThrough: boolean;
  truncated: boolean;
  /** Last sequence that the ledger has, with all before it. */
  stored: number;
  /** Aborts once the container is known to have ended: what is read from then on is all that there will be. */
  ended: AbortController;
  stop: AbortController;
  /** Resolves once all lines stand in the ledger, or nobody looks for more. */
  through: PromiseWithResolvers<void>;
}

/** One reading of each container that is told of, until its end is in the ledger. */
export class LogFollower {
  readonly #options: LogFollowerOptions;
  readonly #following = new Map<string, Following>();
  #signal: AbortSignal | undefined;

  constructor(options: LogFollowerOptions) {
    this.#options = options;
  }

  /** Readings end with this signal. */
  begin(signal: AbortSignal): void {
    this.#signal = signal;
  }

  /**
   * Sees to it that the logs of these containers are read.
   * @returns whether those that have ended stand in the ledger whole
   */
  follow(source: LogSource, started: readonly { container: Container; ended: boolean }[]): boolean {
    const signal = this.#signal;
    for (const { container, ended } of started) {
      const key = keyOf(source, container);
      let following = this.#following.get(key);
      if (following === undefined && signal?.aborted === false) {
        following = {
          source,
          kept: false,
          isThrough: false,
          truncated: false,
          stored: 0,
          ended: new AbortController(),
          stop: new AbortController(),
          through: Promise.withResolvers(),
        };
        this.#following.set(key, following);
        if (ended) {
          following.ended.abort();
        }
        const { through, stop } = following;
        void this.#read(source, container, following, AbortSignal.any([signal, stop.signal])).finally(
          through.resolve,
        );
      }
      if (ended) {
        following?.ended.abort();
      }
    }
    return started.every(({ container, ended }) => {
      const { kept, isThrough } = this.#following.get(keyOf(source, container)) ?? {};
      return !ended || kept === true || isThrough === true;
    });
  }

  /** Whether the log of any step of the build was cut. */
  isTruncated(build: BuildOfLog): boolean {
    return this.#ofBuild(build).some(([, { truncated }]) => truncated);
  }

  /** Forgets a build. */
  drop(build: BuildOfLog): void {
    for (const [key, { stop }] of this.#ofBuild(build)) {
      stop.abort();
      this.#following.delete(key);
    }
  }

  #ofBuild({ organizationId, buildId }: BuildOfLog): [string, Following][] {
    return [...this.#following].filter(
      ([, { source }]) => source.organizationId === organizationId && source.buildId === buildId,
    );
  }

  /** Live while the container runs, then once more for what may have been missed. Never rejects. */
  async #read(
    source: LogSource,
    container: Container,
    following: Following,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, log, onKept } = this.#options;
    const fields = { pod: source.podName, container };
    let failingSince: number | undefined;
    while (!signal.aborted) {
      const isWhole = following.ended.signal.aborted;
      try {
        await this.#readOnce(source, container, following, signal);
        failingSince = undefined;
        if (isWhole) {
          break;
        }
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        if (!isWhole && isGone(error)) {
          // Should it end all the same, it is told of again.
          this.#following.delete(keyOf(source, container));
          return;
        }
        // The ledger comes back, and the node has the log until then.
        const isRead = error instanceof NotStored;
        if (!isWhole || isRead) {
          failingSince = undefined;
        } else {
          failingSince ??= clock.monotonic();
        }
        if (isGone(error) || clock.monotonic() - (failingSince ?? Number.POSITIVE_INFINITY) > GIVE_UP_MS) {
          log.error({ err: error, ...fields }, "the log of a build's container is lost");
          break;
        }
        log.warn({ err: error, ...fields }, "the log of a build's container broke off; reading it again");
        await sleep(clock, PAUSE_MS, signal);
        continue;
      }
      // The next reading is soon, for the end will be told; or late, if the reading broke off without a word.
      await sleep(clock, PAUSE_MS, AbortSignal.any([signal, following.ended.signal]));
    }
    if (signal.aborted) {
      return;
    }
    following.kept = true;
    onKept(source);
  }

  /**
   * Waits until all lines of the container before stand in the ledger: whoever reads the log while it grows would not look
   * for them any more. The containers run side by side, but one writes only once the other has ended.
   */
  async #turn(source: LogSource, container: Container): Promise<void> {
    const before = containers[containers.indexOf(container) - 1];
    if (before !== undefined) {
      await this.#following.get(keyOf(source, before))?.through.promise;
    }
  }

  /** From its beginning to its end, or as far as it goes. What was stored before is left out. */
  async #readOnce(
    source: LogSource,
    container: Container,
    following: Following,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, clock, store, onKept } = this.#options;
    const isWhole = following.ended.signal.aborted;
    const lines = new LogLines(container, source.attempt);
    const batch = new Batch(async (chunks) => {
      await this.#turn(source, container);
      if (signal.aborted) {
        return;
      }
      await store(source, chunks);
      following.stored = Math.max(following.stored, chunks.at(-1)?.sequence ?? 0);
    });
    const isNew = ({ sequence }: BuildLogChunk) => sequence > following.stored;
    const { body } = await client.transport.send(request(source, container, !isWhole, signal));
    try {
      for await (const chunk of body as Readable & AsyncIterable<Buffer>) {
        batch.add(lines.push(chunk).filter(isNew));
        if (lines.isThrough) {
          batch.whenWritten(() => {
            following.truncated ||= lines.truncated;
            following.isThrough = true;
            following.through.resolve();
            // Its end was told of before.
            if (following.ended.signal.aborted) {
              onKept(source);
            }
          });
        }
        batch.check();
      }
      const rest = lines.end(clock.now());
      if (isWhole) {
        batch.add(rest.filter(isNew));
      }
    } finally {
      await batch.end();
    }
    batch.check();
    following.truncated ||= lines.truncated;
    if (isWhole && lines.isMissing) {
      throw new KubeError({ status: 0, reason: "NoLog", message: "the kubelet has no log now" });
    }
  }
}

/** Lines were read, and the ledger did not take them. */
class NotStored extends Error {
  override name = "NotStored";

  constructor(cause: unknown) {
    super("the ledger did not take lines of a build's log", { cause });
  }
}

/** Lines on their way to the ledger: one statement at a time, soon after the first of them came. */
class Batch {
  readonly #write: (chunks: readonly BuildLogChunk[]) => Promise<unknown>;
  #waiting: BuildLogChunk[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #error: NotStored | undefined;

  constructor(write: (chunks: readonly BuildLogChunk[]) => Promise<unknown>) {
    this.#write = write;
  }

  add(chunks: readonly BuildLogChunk[]): void {
    for (const chunk of chunks) {
      this.#waiting.push(chunk);
    }
    if (this.#waiting.length >= BATCH_LINES) {
      this.#flush();
    } else if (this.#waiting.length > 0) {
      this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS);
    }
  }

  /** Calls back once all that was added so far is written, without waiting for more; never when a write has failed. */
  whenWritten(done: () => void): void {
    this.#flush();
    this.#writing = this.#writing.then(() => {
      if (this.#error === undefined) {
        done();
      }
    });
  }

  /** @throws NotStored when a write has failed */
  check(): void {
    if (this.#error !== undefined) {
      throw this.#error;
    }
  }

  /** Writes what is left. Never rejects. */
  async end(): Promise<void> {
    this.#flush();
    await this.#writing;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const chunks = this.#waiting;
    this.#waiting = [];
    if (chunks.length === 0) {
      return;
    }
    this.#writing = this.#writing.then(async () => {
      // After a failure the whole log is read again: no line may stand behind one that is missing.
      if (this.#error !== undefined) {
        return;
      }
      try {
        await this.#write(chunks);
      } catch (error) {
        this.#error = new NotStored(error);
      }
    });
  }
}

const keyOf = ({ podUid }: LogSource, container: Container): string => `${podUid}/${container}`;

/** The pod or its node does not exist any more, or the container never began. */
const isGone = (error: unknown): boolean =>
  error instanceof KubeError && (error.status === 404 || error.status === 400);

function request(
  { namespace, podName }: LogSource,
  container: Container,
  follow: boolean,
  signal: AbortSignal,
) {
  return {
    method: "GET",
    path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(podName)}/log`,
    query: { container, ...(follow ? { follow } : {}) },
    accept: "*/*",
    verb: "log",
    streams: true,
    timeoutMs: OPEN_MS,
    signal,
  } satisfies Parameters<Transport["send"]>[0];
}

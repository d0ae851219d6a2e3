/** Streams the logs of build pods into the ledger while they run, completely, also after a restart. */

import { type Container, containers } from "@slipway/builder/contract";
import { type KubeClient, KubeError } from "@slipway/controller-runtime";
import type { BuildLogChunk } from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { LogLines } from "./log-lines.ts";
import {
  type BuildOfLog,
  isGone,
  keyOf,
  LogBatch,
  LogNotStoredError,
  type LogSource,
  type LogStream,
} from "./log-stream.ts";

/** Inserts lines into the ledger; existing ones stay unchanged. Throws when it cannot. */
export type StoreBuildLog = (
  build: Pick<LogSource, "organizationId" | "projectId" | "buildId">,
  lines: readonly BuildLogChunk[],
) => Promise<unknown>;

export interface LogFollowerOptions {
  client: Pick<KubeClient, "streamPodLog">;
  store: StoreBuildLog;
  clock: Clock;
  log: Logger;
  /** Called when a container's whole log is in the ledger. */
  onStored: (source: LogSource) => void;
}

/** A log that cannot be read or stored is read again after so long. */
const RETRY_INTERVAL_MS = 1_000;
const OPEN_TIMEOUT_MS = 5_000;
/** The log of a terminated container counts as lost when it could not be read for so long. */
const UNREADABLE_TIMEOUT_MS = 60_000;

/** Follows the log of each container until its end is in the ledger. */
export class LogFollower {
  readonly #options: LogFollowerOptions;
  readonly #following = new Map<string, LogStream>();
  #signal: AbortSignal | undefined;

  constructor(options: LogFollowerOptions) {
    this.#options = options;
  }

  /** Starts following, until the signal aborts. */
  start(signal: AbortSignal): void {
    this.#signal = signal;
  }

  /**
   * Follows the logs of these containers.
   * @returns whether those of the terminated ones are completely in the ledger
   */
  follow(source: LogSource, started: readonly { container: Container; ended: boolean }[]): boolean {
    const signal = this.#signal;
    for (const { container, ended } of started) {
      const key = keyOf(source, container);
      let following = this.#following.get(key);
      if (following === undefined && signal?.aborted === false) {
        following = {
          source,
          isStored: false,
          isFinal: false,
          truncated: false,
          stored: 0,
          ended: new AbortController(),
          stop: new AbortController(),
          finished: Promise.withResolvers(),
        };
        this.#following.set(key, following);
        if (ended) {
          following.ended.abort();
        }
        const { finished, stop } = following;
        void this.#read(source, container, following, AbortSignal.any([signal, stop.signal])).finally(
          finished.resolve,
        );
      }
      if (ended) {
        following?.ended.abort();
      }
    }
    return started.every(({ container, ended }) => {
      const { isStored, isFinal } = this.#following.get(keyOf(source, container)) ?? {};
      return !ended || isStored === true || isFinal === true;
    });
  }

  /** Whether the log of any step of the build was cut. */
  isTruncated(build: BuildOfLog): boolean {
    return this.#ofBuild(build).some(([, { truncated }]) => truncated);
  }

  /** Stops following a build. */
  forget(build: BuildOfLog): void {
    for (const [key, { stop }] of this.#ofBuild(build)) {
      stop.abort();
      this.#following.delete(key);
    }
  }

  #ofBuild({ organizationId, buildId }: BuildOfLog): [string, LogStream][] {
    return [...this.#following].filter(
      ([, { source }]) => source.organizationId === organizationId && source.buildId === buildId,
    );
  }

  /** Follows while the container runs, then reads once more for lines that were missed. Never rejects. */
  async #read(
    source: LogSource,
    container: Container,
    following: LogStream,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, log, onStored } = this.#options;
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
          // When it terminates after all, `follow` is called again.
          this.#following.delete(keyOf(source, container));
          return;
        }
        // The ledger will return, and the node keeps the log until then.
        const isRead = error instanceof LogNotStoredError;
        if (!isWhole || isRead) {
          failingSince = undefined;
        } else {
          failingSince ??= clock.monotonic();
        }
        if (
          isGone(error) ||
          clock.monotonic() - (failingSince ?? Number.POSITIVE_INFINITY) > UNREADABLE_TIMEOUT_MS
        ) {
          log.error({ err: error, ...fields }, "the log of a build's container is lost");
          break;
        }
        log.warn({ err: error, ...fields }, "the log of a build's container broke off; reading it again");
        await sleep(clock, RETRY_INTERVAL_MS, signal);
        continue;
      }
      // The next reading starts when the container terminates; or after a pause, when the stream broke off.
      await sleep(clock, RETRY_INTERVAL_MS, AbortSignal.any([signal, following.ended.signal]));
    }
    if (signal.aborted) {
      return;
    }
    following.isStored = true;
    onStored(source);
  }

  /**
   * Waits until all lines of the previous container are in the ledger: readers that follow the growing log would miss later
   * ones. The containers run concurrently, but each writes only once the one before has ended.
   */
  async #waitForPrevious(source: LogSource, container: Container): Promise<void> {
    const before = containers[containers.indexOf(container) - 1];
    if (before !== undefined) {
      await this.#following.get(keyOf(source, before))?.finished.promise;
    }
  }

  /** Reads from the beginning as far as possible, and leaves out what is stored already. */
  async #readOnce(
    source: LogSource,
    container: Container,
    following: LogStream,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, clock, store, onStored } = this.#options;
    const isWhole = following.ended.signal.aborted;
    const lines = new LogLines(container, source.attempt);
    const batch = new LogBatch(async (chunks) => {
      await this.#waitForPrevious(source, container);
      if (signal.aborted) {
        return;
      }
      await store(source, chunks);
      following.stored = Math.max(following.stored, chunks.at(-1)?.sequence ?? 0);
    });
    const isNew = ({ sequence }: BuildLogChunk) => sequence > following.stored;
    const pod = { namespace: source.namespace, name: source.podName };
    const body = await client.streamPodLog(pod, {
      container,
      ...(isWhole ? {} : { follow: true }),
      timeoutMs: OPEN_TIMEOUT_MS,
      signal,
    });
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        batch.add(lines.push(chunk).filter(isNew));
        if (lines.isFinal) {
          batch.whenWritten(() => {
            following.truncated ||= lines.truncated;
            following.isFinal = true;
            following.finished.resolve();
            // The container had terminated before.
            if (following.ended.signal.aborted) {
              onStored(source);
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

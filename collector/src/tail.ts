import { join } from "node:path";
import type { Clock } from "@slipway/process";
import { ContainerLog, type LogLine, type Position } from "./container-log.ts";
import type { Input } from "./input.ts";
import type { CollectorMetrics } from "./metrics.ts";
import type { OpenBatch, Owned } from "./open-batch.ts";
import type { Log } from "./sender.ts";

export interface TailOptions<Event extends Owned> {
  /** The kubelet's folder of pods' logs. */
  podLogs: string;
  input: Input<Event>;
  batch: OpenBatch<Event>;
  metrics: CollectorMetrics;
  log: Log;
  clock: Clock;
}

/** Pause of a log after a failure. Others go on. */
const RETRY_MS = 1_000;

/** A container's log, and what was read of it that is in no batch yet. */
export class Tail<Event extends Owned> {
  readonly folder: string;
  readonly #options: TailOptions<Event>;
  readonly #log: ContainerLog;
  #lines: LogLine[] = [];
  /** How often each step has failed one time after the other. */
  readonly #failures = { read: 0, observe: 0 };
  #retryAt = Number.NEGATIVE_INFINITY;
  /** When it was last read, by the monotonic clock. */
  #readAt: number;

  constructor(folder: string, options: TailOptions<Event>) {
    const { podLogs, input, batch, clock } = options;
    this.folder = folder;
    this.#options = options;
    this.#readAt = clock.monotonic();
    this.#log = new ContainerLog(join(podLogs, folder), batch.positions[folder], {
      ...{ lines: input.lines, clock },
      onGap: (files, next) => this.#gap(files, next),
    });
  }

  /**
   * Takes what comes next into the batch. Never rejects: one that cannot be read is tried again after a pause.
   * @returns how many lines were taken, fewer than there are when the batch is full; `removed` once the log is, and has been read to its end
   */
  async read(): Promise<number | "removed"> {
    const { input, metrics, clock } = this.#options;
    if (clock.monotonic() < this.#retryAt) {
      return 0;
    }
    return this.#attempt<number | "removed">("read", 0, async () => {
      if (this.#lines.length === 0) {
        const read = await this.#log.read();
        if (read === "removed") {
          await this.#log.close();
          input.closed?.(this.folder);
          return read;
        }
        metrics.linesRead(read.length);
        this.#lines = read;
      }
      const taken = this.#take();
      this.#readAt = clock.monotonic();
      return taken;
    });
  }

  /** Records which files exist, also while nothing is read. Never rejects. */
  async observeFiles(): Promise<void> {
    await this.#attempt("observe", undefined, () => this.#log.observeFiles());
  }

  /** Whether it, or which files it has, could not be read the last time. */
  get isFailing(): boolean {
    return this.#failures.read > 0 || this.#failures.observe > 0;
  }

  /** Milliseconds for which it has not been read. */
  get unreadMs(): number {
    return this.#options.clock.monotonic() - this.#readAt;
  }

  /** Closes a removed log, whose files only this process still has: what was not read of it is lost, and recorded. */
  async abandon(): Promise<void> {
    // What cannot be read any more is at least one.
    const unread = await this.#log.countUnread().catch(() => 1);
    const lost = Math.max(unread, this.#lines.length > 0 ? 1 : 0);
    if (lost > 0) {
      this.#gap(lost, undefined);
    }
    await this.#log.close();
    this.#options.input.closed?.(this.folder);
  }

  async close(): Promise<void> {
    await this.#log.close();
  }

  /** What has been taken before one cannot be is taken for good: it is never taken again. */
  #take(): number {
    const { input, batch } = this.#options;
    let taken = 0;
    try {
      for (const line of this.#lines) {
        if (batch.isFull || !input.take(line, this.folder, batch)) {
          break;
        }
        taken += 1;
      }
    } finally {
      const last = this.#lines[taken - 1];
      if (last) {
        this.#moveTo(last.next);
      }
      this.#lines = this.#lines.slice(taken);
    }
    return taken;
  }

  #moveTo(position: Position): void {
    const { input, batch } = this.#options;
    batch.moveTo(this.folder, { ...position, ...input.kept?.(this.folder) });
  }

  /** Recorded once: with it the position passes what is lost. */
  #gap(files: number, next: Position | undefined): void {
    const { input, batch, metrics, log } = this.#options;
    metrics.gap(files);
    log.error(
      { folder: this.folder, files },
      "files of a log were removed or damaged before they were read: what they had is lost",
    );
    input.onGap(this.folder, files, batch);
    if (next) {
      this.#moveTo(next);
    }
  }

  async #attempt<Result>(
    step: "read" | "observe",
    otherwise: Result,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const { clock, metrics, log } = this.#options;
    try {
      const result = await work();
      this.#failures[step] = 0;
      return result;
    } catch (error) {
      if (step === "read") {
        this.#retryAt = clock.monotonic() + RETRY_MS;
      }
      this.#failures[step] += 1;
      metrics.failed("read");
      const failures = this.#failures[step];
      if (failures === 1 || failures % 60 === 0) {
        log.error({ err: error, folder: this.folder, failures }, "logs cannot be read");
      }
      return otherwise;
    }
  }
}

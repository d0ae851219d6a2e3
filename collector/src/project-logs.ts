import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type LogEvent, type LogSource, MAX_LOG_TEXT_BYTES, nanoseconds, STAMP } from "@slipway/analytics";
import type { Clock } from "@slipway/process";
import type { LogLine } from "./container-log.ts";
import type { Input } from "./input.ts";
import { levelOf } from "./level.ts";
import type { LogBounds } from "./log-bounds.ts";
import { ignoreMissing } from "./log-files.ts";
import type { CollectorMetrics } from "./metrics.ts";
import type { OpenBatch } from "./open-batch.ts";
import type { LoggingPod } from "./pod-owners.ts";
import type { Positions } from "./spool-files.ts";

export interface ProjectLogsOptions {
  /** Pods of this node by their uids. */
  find: (uid: string) => LoggingPod | undefined;
  bounds: Pick<LogBounds, "admits">;
  /** Days for which the store keeps the lines. */
  days: number;
  metrics: Pick<CollectorMetrics, "refused" | "omitted">;
  clock: Clock;
}

/** A record of left out lines in a batch that is still open. */
interface OpenRecord {
  batch: number;
  event: LogEvent;
}

/** Characters of an identity that are kept. */
const FILE = 16;

/** The logs of applications' and databases' instances: each piece of a line of either output is an event. */
export class ProjectLogs implements Input<LogEvent> {
  readonly lines = "pieces";
  // A node has a hundred instances, most of them silent.
  readonly idleMs = 500;
  readonly #options: ProjectLogsOptions;
  readonly #sources = new Map<string, LogSource>();
  readonly #records = new Map<string, OpenRecord>();
  /** Levels of lines that go on in their next piece, by folder and stream. */
  readonly #unfinished = new Map<string, LogEvent["level"]>();

  constructor(options: ProjectLogsOptions) {
    this.#options = options;
  }

  async folders(podLogs: string, kept: Readonly<Positions>): Promise<string[]> {
    const pods = await readdir(podLogs).catch(ignoreMissing<string>);
    const found = pods.flatMap((pod) => {
      const [namespace = "", instance = "", uid = ""] = pod.split("_");
      const known = namespace === "" || instance === "" ? undefined : this.#options.find(uid);
      if (known) {
        const { container, ...owner } = known;
        const folder = join(pod, container);
        this.#sources.set(folder, { ...owner, instance, container });
        return [folder];
      }
      return [];
    });
    // A pod that is deleted may still have its log, of which an earlier process has recorded the owner.
    const there = new Set(pods);
    for (const [folder, { owner }] of Object.entries(kept)) {
      if (owner && there.has(dirname(folder)) && !found.includes(folder)) {
        const [, instance = ""] = dirname(folder).split("_");
        this.#sources.set(folder, { ...owner, instance, container: basename(folder) });
        found.push(folder);
      }
    }
    return found;
  }

  ownerOf(folder: string) {
    const source = this.#sources.get(folder);
    return source && { organization: source.organization, project: source.project };
  }

  take({ content, piece, next }: LogLine, folder: string, batch: OpenBatch<LogEvent>): boolean {
    const { bounds, days, metrics, clock } = this.#options;
    const source = this.#sources.get(folder);
    if (!source) {
      return false;
    }
    if (typeof content === "string" || !piece) {
      metrics.refused("damaged");
      this.#record(folder, source, nanosecondsOf(clock.now()), batch).omittedLines += 1;
      return true;
    }
    const stamp = STAMP.exec(piece.time);
    const at = stamp ? String(nanoseconds(stamp)) : nanosecondsOf(clock.now());
    if (!bounds.admits(source, Number(at.slice(0, -6)), content.length)) {
      metrics.omitted(1);
      const record = this.#record(folder, source, at, batch);
      record.omittedLines += 1;
      record.omittedBytes += content.length;
      return true;
    }
    // No runtime writes longer pieces.
    const over = content.length - MAX_LOG_TEXT_BYTES;
    if (over > 0) {
      this.#record(folder, source, at, batch).omittedBytes += over;
    }
    const text = content.toString("utf8", 0, MAX_LOG_TEXT_BYTES);
    const line = `${folder}/${piece.stream}`;
    const begun = this.#unfinished.get(line);
    const level = begun === undefined ? levelOf(text) : begun;
    if (piece.isPartial) {
      this.#unfinished.set(line, level);
    } else {
      this.#unfinished.delete(line);
    }
    const event: LogEvent = {
      ...source,
      at,
      stream: piece.stream,
      level,
      text,
      continues: piece.isPartial,
      file: next.file.slice(0, FILE),
      offset: next.offset,
      ...NOTHING_OMITTED,
      days,
    };
    batch.add(event);
    return true;
  }

  onGap(folder: string, files: number, batch: OpenBatch<LogEvent>): void {
    const source = this.#sources.get(folder);
    if (source) {
      this.#record(folder, source, nanosecondsOf(this.#options.clock.now()), batch).lostFiles += files;
    }
  }

  closed(folder: string): void {
    this.#sources.delete(folder);
    this.#records.delete(folder);
    this.#unfinished.delete(`${folder}/stdout`);
    this.#unfinished.delete(`${folder}/stderr`);
  }

  /** The record of what this batch lacks of a log: it is written together with the position behind those lines. */
  #record(folder: string, source: LogSource, at: string, batch: OpenBatch<LogEvent>): LogEvent {
    const known = this.#records.get(folder);
    if (known?.batch === batch.number) {
      return known.event;
    }
    const event: LogEvent = {
      ...source,
      at,
      stream: "stdout",
      level: null,
      text: "",
      continues: false,
      file: "0".repeat(FILE),
      offset: 0,
      ...NOTHING_OMITTED,
      days: this.#options.days,
    };
    this.#records.set(folder, { batch: batch.number, event });
    batch.add(event);
    return event;
  }
}

const nanosecondsOf = (now: Date): string => `${now.getTime()}000000`;

const NOTHING_OMITTED = { omittedLines: 0, omittedBytes: 0, lostFiles: 0 } as const;

import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import {
  type LogEvent,
  type LogSource,
  MAX_LOG_TEXT_BYTES,
  nanoseconds,
  STAMP,
  type Stream,
} from "@slipway/analytics";
import type { Clock } from "@slipway/process";
import type { LogLine } from "./container-log.ts";
import type { Input } from "./input.ts";
import { levelOf } from "./level.ts";
import type { LogBounds } from "./log-bounds.ts";
import { ignoreMissing } from "./log-files.ts";
import type { CollectorMetrics } from "./metrics.ts";
import { FILE, NOTHING_OMITTED, Omissions } from "./omissions.ts";
import type { OpenBatch } from "./open-batch.ts";
import type { LoggingPod } from "./pod-owners.ts";
import type { KeptPosition, Positions, WithPosition } from "./spool-files.ts";

export interface ProjectLogsOptions {
  /** Pods of this node by their uids. */
  find: (uid: string) => LoggingPod | undefined;
  bounds: Pick<LogBounds, "admits">;
  /** Days for which the store keeps the lines. */
  days: number;
  metrics: Pick<CollectorMetrics, "refused" | "omitted">;
  clock: Clock;
}

/** One container's log. */
interface SourceLog {
  source: LogSource;
  /** When the last line that was read was written, in nanoseconds since the epoch. */
  lastAt: string | undefined;
  /** Levels of lines that go on in their next piece, by the output. */
  unfinished: Map<Stream, LogEvent["level"]>;
  omissions: Omissions;
}

/** The logs of applications' and databases' instances: each piece of a line of either output is an event. */
export class ProjectLogs implements Input<LogEvent> {
  readonly lines = "pieces";
  // A node has a hundred instances, most of them silent.
  readonly idleMs = 500;
  readonly #options: ProjectLogsOptions;
  readonly #logs = new Map<string, SourceLog>();

  constructor(options: ProjectLogsOptions) {
    this.#options = options;
  }

  async folders(podLogs: string, kept: Readonly<Positions>): Promise<string[]> {
    const pods = await readdir(podLogs).catch(ignoreMissing<string>);
    const found = pods.flatMap((pod) => {
      const [namespace = "", instance = "", uid = ""] = pod.split("_");
      const known = namespace === "" || instance === "" ? undefined : this.#options.find(uid);
      if (known) {
        const { organization, project, container } = known;
        const folder = join(pod, container);
        this.#begin(folder, { organization, project, instance, container }, kept[folder]);
        return [folder];
      }
      return [];
    });
    // A pod that is deleted may still have its log, of which an earlier process has recorded the owner.
    const there = new Set(pods);
    for (const [folder, position] of Object.entries(kept)) {
      if (position.owner && there.has(dirname(folder)) && !found.includes(folder)) {
        const [, instance = ""] = dirname(folder).split("_");
        this.#begin(folder, { ...position.owner, instance, container: basename(folder) }, position);
        found.push(folder);
      }
    }
    return found;
  }

  kept(folder: string): WithPosition {
    const log = this.#logs.get(folder);
    if (!log) {
      return {};
    }
    const { organization, project } = log.source;
    const within = [...log.unfinished.keys()];
    return {
      owner: { organization, project },
      ...(log.lastAt === undefined ? {} : { at: log.lastAt }),
      ...(within.length > 0 ? { within } : {}),
    };
  }

  take({ content, piece, next }: LogLine, folder: string, batch: OpenBatch<LogEvent>): boolean {
    const { bounds, days, metrics } = this.#options;
    const log = this.#logs.get(folder);
    if (!log) {
      return false;
    }
    if (typeof content === "string" || !piece) {
      metrics.refused("damaged");
      this.#record(log, batch).omittedLines += 1;
      return true;
    }
    const { stream, isPartial } = piece;
    const stamp = STAMP.exec(piece.time);
    const at = stamp ? String(nanoseconds(stamp)) : this.#timeOf(log);
    log.lastAt = at;
    const isAdmitted = bounds.admits(log.source, Number(at.slice(0, -6)), content.length);
    const text = isAdmitted ? content.toString("utf8", 0, MAX_LOG_TEXT_BYTES) : "";
    const begun = log.unfinished.get(stream);
    // Of a line whose beginning is left out the level is not known.
    const level = begun === undefined && isAdmitted ? levelOf(text) : (begun ?? null);
    if (isPartial) {
      log.unfinished.set(stream, level);
    } else {
      log.unfinished.delete(stream);
    }
    if (!isAdmitted) {
      metrics.omitted(1);
      const record = this.#record(log, batch);
      record.omittedLines += 1;
      record.omittedBytes += content.length;
      return true;
    }
    // No runtime writes longer pieces.
    const over = content.length - MAX_LOG_TEXT_BYTES;
    if (over > 0) {
      this.#record(log, batch).omittedBytes += over;
    }
    batch.add({
      ...log.source,
      ...{ at, stream, level, text, continues: isPartial },
      ...{ file: next.file.slice(0, FILE), offset: next.offset },
      ...NOTHING_OMITTED,
      days,
    });
    return true;
  }

  onGap(folder: string, files: number, batch: OpenBatch<LogEvent>): void {
    const log = this.#logs.get(folder);
    if (log) {
      this.#record(log, batch).lostFiles += files;
      // The end of a line is lost, too.
      log.unfinished.clear();
    }
  }

  closed(folder: string): void {
    this.#logs.delete(folder);
  }

  #begin(folder: string, source: LogSource, kept: KeptPosition | undefined): void {
    if (!this.#logs.has(folder)) {
      // Within a line, whose first piece an earlier process has read.
      const unfinished = new Map(kept?.within?.map((stream): [Stream, null] => [stream, null]));
      this.#logs.set(folder, { source, lastAt: kept?.at, unfinished, omissions: new Omissions() });
    }
  }

  /** The record of what is left out behind the last line that was read. */
  #record(log: SourceLog, batch: OpenBatch<LogEvent>): LogEvent {
    return log.omissions.of(log.source, this.#timeOf(log), this.#options.days, batch);
  }

  #timeOf({ lastAt }: SourceLog): string {
    return lastAt ?? `${this.#options.clock.now().getTime()}000000`;
  }
}

import type { ContainerLogOptions, LogLine } from "./container-log.ts";
import type { OpenBatch, Owned } from "./open-batch.ts";
import type { Positions, WithPosition } from "./spool-files.ts";

/** Which containers' logs are read, and what becomes of their lines. */
export interface Input<Event extends Owned> {
  /** Containers whose logs are there, as `pod's folder/container`. @param kept positions that earlier processes recorded */
  folders(podLogs: string, kept: Readonly<Positions>): Promise<string[]>;
  lines: ContainerLogOptions["lines"];
  /** Takes a line into the batch, or drops it. @returns false for a line that is to be evaluated again later */
  take(line: LogLine, folder: string, batch: OpenBatch<Event>): boolean;
  /** Files of a log were removed or damaged before they were read. */
  onGap(folder: string, files: number, batch: OpenBatch<Event>): void;
  /** A log is removed and read to its end. */
  closed?(folder: string): void;
  /** What is recorded with the position behind the last line that was taken. */
  kept?(folder: string): WithPosition;
  /** Pause when nothing new was found, in milliseconds. */
  idleMs: number;
}

/** Levels of log lines, from the least to the most serious. */
export const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal"] as const;

export type Level = (typeof LEVELS)[number];

export const STREAMS = ["stdout", "stderr"] as const;

export type Stream = (typeof STREAMS)[number];

/** Bytes of one line as it was written (those that are no UTF-8 take three in its text): what a runtime writes at most in one piece. A longer line is several, joined by `continues`. */
export const MAX_LOG_TEXT_BYTES = 16 * 1024;

/** Which container of which project wrote. */
export interface LogSource {
  /** Organization's id. */
  organization: string;
  /** Project's id. */
  project: string;
  /** Name of the pod. */
  instance: string;
  /** Name of the container. */
  container: string;
}

/** One line of an instance's log, or a record of lines that were left out. */
export interface LogEvent extends LogSource {
  /** When the line was written: nanoseconds since the epoch as decimal digits, which no number holds exactly. */
  at: string;
  stream: Stream;
  /** Null where the text names none. */
  level: Level | null;
  /** At most {@link MAX_LOG_TEXT_BYTES}; empty of a record of lines that were left out. */
  text: string;
  /** Whether the text goes on in the next line of this instance and stream: a long line is written in pieces. */
  continues: boolean;
  /** The file that the node kept the line in, by its identity: 16 hexadecimal digits. With the offset it identifies the line. */
  file: string;
  /** Bytes from the beginning of that file to the end of the line. */
  offset: number;
  /** Lines that were over the bounds at that time, and their bytes; 0 of a line. */
  omittedLines: number;
  omittedBytes: number;
  /** Files that the node removed before they were read: how many lines they had is unknown. */
  lostFiles: number;
  /** For how long the store keeps it, from `at`: a part of the batch, since a batch that is sent again has to be the same. */
  days: number;
}

/** Lines that are inserted together or not at all, under an id as that of `EventBatch`. */
export interface LogBatch {
  /** 1 to 200 printable ASCII characters. */
  id: string;
  events: LogEvent[];
}

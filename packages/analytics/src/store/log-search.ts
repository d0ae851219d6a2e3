import { LEVELS, type Level, type Stream } from "../log-line.ts";
import { rowsOf } from "./rows.ts";
import { name, type Place } from "./schema.ts";
import { type Add, collectValues, type Statement } from "./statement.ts";
import type { Store } from "./store.ts";
import type { Window } from "./window.ts";

/** Lines of instances' logs, found by project and time. */

/** The columns by which lines of a project are ordered: no two lines are equal in all of them. */
const KEY = "at, instance, container, file, offset";

/** Where a line is among all of its project. */
export interface LogCursor {
  /** Nanoseconds since the epoch, as decimal digits. */
  at: string;
  instance: string;
  container: string;
  /** 16 hexadecimal digits. */
  file: string;
  offset: number;
}

/** Whose lines of which time. What is absent leaves out nothing. */
export interface LogSelection {
  organization: string;
  project: string;
  window: Window;
  instance?: string;
}

/** Which of these lines. */
export interface LogQuery extends LogSelection {
  /** Lines whose text contains this; ASCII letters of either case are equal. */
  text?: string;
  /** Lines of one of these levels; null: of none. */
  levels?: readonly (Level | null)[];
  order: "newest" | "oldest";
  /** Lines that follow this one in the order. */
  after?: LogCursor;
  limit: number;
  /** Of the lines' sizes together; the last line may exceed it. Without it only `limit` ends them. */
  maxSize?: number;
}

/** A line that was found. */
export interface FoundLine extends LogCursor {
  stream: Stream;
  level: Level | null;
  text: string;
  /** Bytes of the text as JSON, which is longer than the text, by six times where that is control characters. */
  size: number;
  continues: boolean;
}

/** What was left out of the log in a window. */
export interface Omitted {
  lines: number;
  bytes: number;
  files: number;
}

/**
 * Lines in the requested order, at most `limit`, up to the one with which they exceed `maxSize`.
 * @param signal cancels it
 * @throws StoreUnavailable
 */
export async function searchLogs(store: Store, query: LogQuery, signal?: AbortSignal): Promise<FoundLine[]> {
  const { rows } = await rowsOf<LogRow>(store, linesOf(store, query), { signal });
  return rows.map((row) => ({ ...row, level: LEVELS.find((one) => one === row.level) ?? null }));
}

/**
 * What the window lacks, of all lines of the project or one instance whatever their text.
 * @param signal cancels it
 * @throws StoreUnavailable
 */
export async function omittedLogs(store: Store, query: LogSelection, signal?: AbortSignal): Promise<Omitted> {
  const { rows } = await rowsOf<Omitted>(store, omittedOf(store, query), { signal });
  return rows[0] ?? { lines: 0, bytes: 0, files: 0 };
}

/** SQL of {@link omittedLogs}. Pure. */
export function omittedOf(place: Place, query: LogSelection): Statement {
  const { add, parameters } = collectValues();
  // The index of these columns leaves out all blocks of lines alone.
  const statement = `SELECT sum(omitted_lines) AS lines, sum(omitted_bytes) AS bytes, sum(lost_files) AS files
    FROM ${name(place, "logs")}
    WHERE ${selected(query, add)} AND (omitted_lines > 0 OR omitted_bytes > 0 OR lost_files > 0)`;
  return { query: statement, parameters };
}

type LogRow = Omit<FoundLine, "level"> & { level: string };

/** SQL of {@link searchLogs}. Pure. */
export function linesOf(place: Place, query: LogQuery): Statement {
  const { add, parameters } = collectValues();
  const { text, levels, order, after, limit, maxSize = Number.MAX_SAFE_INTEGER } = query;
  const where = [selected(query, add), "omitted_lines = 0", "omitted_bytes = 0", "lost_files = 0"];
  if (text !== undefined) {
    where.push(`positionCaseInsensitive(text, ${add("String", text)}) > 0`);
  }
  if (levels !== undefined) {
    where.push(
      `level IN ${add(
        "Array(String)",
        levels.map((level) => level ?? ""),
      )}`,
    );
  }
  if (after !== undefined) {
    const { at, instance, container, file, offset } = after;
    const moment = momentOf(at, add);
    // The first condition is for the index, which does not read the second.
    const [to, beyond] = order === "newest" ? ["<=", "<"] : [">=", ">"];
    const values = [add("String", instance), add("String", container), add("String", file)];
    where.push(`at ${to} ${moment}`);
    where.push(
      `(${KEY}) ${beyond} (${moment}, ${values[0]}, ${values[1]}, toFixedString(${values[2]}, 16), ${add("UInt64", offset)})`,
    );
  }
  const direction = order === "newest" ? "DESC" : "ASC";
  const sorted = KEY.split(", ")
    .map((column) => `${column} ${direction}`)
    .join(", ");
  // What is before a line grows with each, by its quotes at least: it is also the order.
  const statement = `SELECT toString(toUnixTimestamp64Nano(at)) AS at, instance, container, toString(file) AS file, offset,
      stream, level, text, size, continues
    FROM (SELECT *, sum(size) OVER (ORDER BY ${sorted} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - size AS before
      FROM (SELECT *, length(toJSONString(text)) AS size
        FROM (SELECT * FROM ${name(place, "logs")} WHERE ${where.join(" AND ")}
          ORDER BY ${sorted} LIMIT ${add("UInt32", limit)})))
    WHERE before <= ${add("UInt64", maxSize)} ORDER BY before`;
  return { query: statement, parameters };
}

function selected({ organization, project, window, instance }: LogSelection, add: Add): string {
  const where = [
    `organization = ${add("String", organization)}`,
    `project = ${add("String", project)}`,
    `at >= ${momentOf(`${window.from}000000`, add)} AND at < ${momentOf(`${window.to}000000`, add)}`,
  ];
  if (instance !== undefined) {
    where.push(`instance = ${add("String", instance)}`);
  }
  return where.join(" AND ");
}

const momentOf = (nanoseconds: string, add: Add): string =>
  `fromUnixTimestamp64Nano(${add("Int64", nanoseconds)}, 'UTC')`;

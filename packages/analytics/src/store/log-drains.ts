import { LEVELS, type Level, type Stream } from "../log-line.ts";
import { rowsOf } from "./rows.ts";
import { name, type Place } from "./schema.ts";
import { type Add, collectValues, type Statement } from "./statement.ts";
import { ask, type Store } from "./store.ts";

/**
 * Lines of an organization's logs in the order in which they came to the store, for log drains: `stored_at` is the store's own time of the
 * insert. A reader that stays behind every insert that is not complete misses no line, however late it was written or sent.
 */

/** By what lines of one insert, and of several in one millisecond, are ordered: no two lines of an organization are equal in all of them. */
const KEY = "stored_at, project, at, instance, container, file, offset";
const COLUMNS = KEY.split(", ").length;

/** Behind which line a reader is: as the columns of {@link KEY}; only the first of a position that is a moment. */
export type DrainPosition = readonly [storedAt: string, ...rest: string[]];

/** A line on its way to a receiver. */
export interface DrainedLine {
  /** Milliseconds since the epoch at which the store took it, as decimal digits. */
  storedAt: string;
  project: string;
  /** Nanoseconds since the epoch, as decimal digits. */
  at: string;
  instance: string;
  container: string;
  file: string;
  offset: string;
  stream: Stream;
  level: Level | null;
  text: string;
  continues: boolean;
}

/** Whose lines. */
export interface DrainSelection {
  organization: string;
  /** All projects without it. */
  project?: string;
}

const LINES = "drainable AND omitted_lines = 0 AND omitted_bytes = 0 AND lost_files = 0";

/** Organizations in one query: ClickHouse bounds what a parameter may have. */
const MAX_NAMED = 500;

/** Milliseconds by which a reader stays behind an insert that has just begun. */
const MARGIN_MS = 1_000;
/** And on a cluster, whose members get rows from each other. */
const CLUSTER_MARGIN_MS = 60_000;

/**
 * Up to which moment (milliseconds since the epoch, by the store's clock) all lines are there: no insert that is under way began before it, and
 * none that begins later gets an earlier time.
 * @throws StoreUnavailable
 */
export async function drainHorizon(store: Store): Promise<{ now: number; horizon: number }> {
  // An insert is in this list before its rows get their time, and until they are there for every reader.
  const query = `SELECT toUnixTimestamp64Milli(now64(3)) AS now,
      toUnixTimestamp64Milli(now64(3) - toIntervalMillisecond(toInt64(maxOrDefault(elapsed) * 1000))) AS begun
    FROM system.processes WHERE startsWith(query, {p0:String})`;
  const parameters = { p0: `INSERT INTO ${name(store, "logs")}` };
  const { rows } = await rowsOf<{ now: number; begun: number }>(store, { query, parameters });
  const [row] = rows;
  if (!row) {
    throw new Error("the store does not say what it does");
  }
  const margin = store.cluster === undefined ? MARGIN_MS : CLUSTER_MARGIN_MS;
  return { now: row.now, horizon: Math.min(row.now, row.begun) - margin };
}

/** Of these organizations those to which lines came in a window that ends with its second moment. @throws StoreUnavailable */
export async function organizationsWithLines(
  store: Store,
  organizations: readonly string[],
  window: readonly [after: number, to: number],
): Promise<Set<string>> {
  const found = new Set<string>();
  for (let first = 0; first < organizations.length; first += MAX_NAMED) {
    const { add, parameters } = collectValues();
    const named = add("Array(String)", organizations.slice(first, first + MAX_NAMED));
    const query = `SELECT DISTINCT organization FROM ${name(store, "logs")}
    WHERE organization IN ${named} AND stored_at > ${moment(String(window[0]), add)}
      AND stored_at <= ${moment(String(window[1]), add)} AND ${LINES}`;
    const { rows } = await rowsOf<{ organization: string }>(store, { query, parameters });
    for (const { organization } of rows) {
      found.add(organization);
    }
  }
  return found;
}

/** What one page has at most. */
export interface DrainPage extends DrainSelection {
  after: DrainPosition;
  /** The page ends here, in milliseconds since the epoch: at most {@link drainHorizon}. */
  to: number;
  lines: number;
  /** Bytes of text; the last line may exceed it. */
  bytes: number;
}

/** Lines behind a position, in their order. @throws StoreUnavailable */
export async function drainPage(store: Store, page: DrainPage, signal?: AbortSignal): Promise<DrainedLine[]> {
  const { rows } = await rowsOf<DrainedLine & { level: string }>(store, pageOf(store, page), { signal });
  return rows.map((row) => ({ ...row, level: LEVELS.find((one) => one === row.level) ?? null }));
}

/** SQL of {@link drainPage}. Pure. */
export function pageOf(place: Place, page: DrainPage): Statement {
  const { add, parameters } = collectValues();
  const logs = name(place, "logs");
  const where = `${behind(page, add)} AND stored_at <= ${moment(String(page.to), add)}`;
  // Keys are sorted without their text, which is read of the page alone.
  // What is before a line grows with each, but for those without text: the row's number is the order.
  const sorted = `OVER (ORDER BY ${KEY} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)`;
  const statement = `SELECT toString(toUnixTimestamp64Milli(stored_at)) AS storedAt, project, toString(toUnixTimestamp64Nano(at)) AS at,
      instance, container, toString(file) AS file, toString(offset) AS offset, stream, level, text, continues
    FROM (SELECT *, sum(length(text)) ${sorted} - length(text) AS before, row_number() OVER (ORDER BY ${KEY}) AS row
      FROM (SELECT * FROM ${logs} WHERE ${where} AND (${KEY}) IN (
        SELECT ${KEY} FROM ${logs} WHERE ${where} ORDER BY ${KEY} LIMIT ${add("UInt32", page.lines)})))
    WHERE before <= ${add("UInt64", page.bytes)} ORDER BY row`;
  return { query: statement, parameters };
}

/** When the next line behind a position was stored; undefined when there is none until `to`. @throws StoreUnavailable */
export async function nextStored(
  store: Store,
  selection: DrainSelection & { after: DrainPosition; to: number },
): Promise<number | undefined> {
  const { add, parameters } = collectValues();
  const query = `SELECT toUnixTimestamp64Milli(min(stored_at)) AS stored, count() AS n FROM ${name(store, "logs")}
    WHERE ${behind(selection, add)} AND stored_at <= ${moment(String(selection.to), add)}`;
  const { rows } = await rowsOf<{ stored: number; n: number }>(store, { query, parameters });
  return rows[0] && rows[0].n > 0 ? rows[0].stored : undefined;
}

/** How many lines are behind a position until a moment. @throws StoreUnavailable */
export async function skippedLines(
  store: Store,
  selection: DrainSelection & { after: DrainPosition; to: number },
): Promise<number> {
  const { add, parameters } = collectValues();
  const query = `SELECT count() AS n FROM ${name(store, "logs")}
    WHERE ${behind(selection, add)} AND stored_at <= ${moment(String(selection.to), add)}`;
  const { rows } = await rowsOf<{ n: number }>(store, { query, parameters });
  return rows[0]?.n ?? 0;
}

/** What is kept of a drain, by the uid of its resource. */
export interface SavedPosition {
  drain: string;
  /** Of several the highest counts. */
  version: number;
  position: DrainPosition;
  refused: number;
  skipped: number;
}

/** Positions of these drains. @throws StoreUnavailable */
export async function savedPositions(store: Store, drains: readonly string[]): Promise<SavedPosition[]> {
  const { add, parameters } = collectValues();
  const query = `SELECT drain, argMax(position, version) AS text, argMax(refused, version) AS r, argMax(skipped, version) AS s,
      max(version) AS v
    FROM ${name(store, "log_drain_positions")} WHERE drain IN ${add("Array(String)", drains)} GROUP BY drain`;
  const { rows } = await rowsOf<{ drain: string; text: string; r: number; s: number; v: number }>(store, {
    query,
    parameters,
  });
  return rows.map(({ drain, text, r, s, v }) => ({
    ...{ drain, version: v, refused: r, skipped: s },
    position: JSON.parse(text) as DrainPosition,
  }));
}

/** Saves positions, all in one insert. @throws StoreUnavailable */
export async function savePositions(store: Store, positions: readonly SavedPosition[]): Promise<void> {
  await ask(() =>
    store.client.insert({
      table: name(store, "log_drain_positions"),
      values: positions.map(({ drain, version, position, refused, skipped }) => ({
        ...{ drain, version, position: JSON.stringify(position), refused, skipped },
      })),
      columns: ["drain", "version", "position", "refused", "skipped"],
      format: "JSONEachRow",
      clickhouse_settings: { async_insert: 0 },
    }),
  );
}

function behind(
  { organization, project, after }: DrainSelection & { after: DrainPosition },
  add: Add,
): string {
  const where = [`organization = ${add("String", organization)}`, LINES];
  if (project !== undefined) {
    where.push(`project = ${add("String", project)}`);
  }
  const [storedAt] = after;
  if (after.length !== COLUMNS) {
    return [...where, `stored_at > ${moment(storedAt, add)}`].join(" AND ");
  }
  const [, ofProject = "", at = "0", instance = "", container = "", file = "", offset = "0"] = after;
  const values = [
    moment(storedAt, add),
    add("String", ofProject),
    `fromUnixTimestamp64Nano(${add("Int64", at)}, 'UTC')`,
    add("String", instance),
    add("String", container),
    `toFixedString(${add("String", file)}, 16)`,
    add("UInt64", offset),
  ];
  // The first condition is for the index, which does not read the second.
  where.push(`stored_at >= ${moment(storedAt, add)}`, `(${KEY}) > (${values.join(", ")})`);
  return where.join(" AND ");
}

const moment = (milliseconds: string, add: Add): string =>
  `fromUnixTimestamp64Milli(${add("Int64", milliseconds)}, 'UTC')`;

import { countsOfEvents, merged, name, type Place, type Rollup, rollups } from "./schema.ts";
import { partsOf, type Window } from "./window.ts";

/** SQL of the store's questions: constants and `{name:Type}`, never a value. Pure. */

/** Which events. */
export interface Selection {
  organization: string;
  project: string;
  window: Window;
  filter: Filter;
}

/** What is absent leaves out nothing. */
export interface Filter {
  /** Status, 100 to 599. */
  statusCode?: number;
  /** First digit of a status. */
  statusClass?: number;
  /** Address, as events have it. */
  sourceIp?: string;
  /** A path as it was requested, or a route. */
  path?: string;
}

/** Columns that counts are made by. */
export type Column = "status" | "route" | "user_agent" | "source_ip";

export type Value = string | number | readonly (string | number)[];

export interface Statement {
  query: string;
  parameters: Record<string, Value>;
}

/** How requests are counted. */
export interface Counting {
  columns: readonly Column[];
  /** All sums, or the number of requests alone (`n`). */
  measures: "all" | "number";
  /** The classes of statuses besides, as `class2` to `class5`. */
  classes?: boolean;
  /** Values of a column that alone count. */
  among?: { column: Column; values: readonly (string | number)[] };
  /** Groups to return, those with the most requests first, and from which one on; all of them in no order without it. */
  most?: { limit: number; offset: number };
  /** Groups to return of each status. */
  mostByStatus?: number;
}

export type Add = (type: string, value: Value) => string;

/** Collects values of a statement, and returns the placeholder of each. */
export function collectValues(): { add: Add; parameters: Record<string, Value> } {
  const parameters: Record<string, Value> = {};
  const add: Add = (type, value) => {
    const key = `p${Object.keys(parameters).length}`;
    parameters[key] = value;
    return `{${key}:${type}}`;
  };
  return { add, parameters };
}

/** Counts over a window's full hours and minutes and what is left at its edges. Without columns it is one row, even of nothing. */
export function countsBy(place: Place, selection: Selection, counting: Counting): Statement {
  const { add, parameters } = collectValues();
  const { columns, measures, classes, most, mostByStatus } = counting;
  const selected = [
    ...columns,
    measures === "all" ? merged : "sum(requests) AS n",
    ...(classes
      ? [2, 3, 4, 5].map((one) => `sumIf(requests, intDiv(status, 100) = ${one}) AS class${one}`)
      : []),
  ];
  const inside = classes ? [...columns, "status" as const] : columns;
  const lines = [
    `SELECT ${selected.join(", ")} FROM (${sources(place, selection, { ...counting, columns: inside }, add)})`,
  ];
  if (columns.length > 0) {
    lines.push(`GROUP BY ${columns.join(", ")}`);
  }
  if (most || mostByStatus) {
    lines.push(`ORDER BY n DESC, ${columns.join(", ")}`);
  }
  if (mostByStatus) {
    lines.push(`LIMIT ${add("UInt32", mostByStatus)} BY status`);
  }
  if (most) {
    lines.push(`LIMIT ${add("UInt32", most.limit)} OFFSET ${add("UInt64", most.offset)}`);
  }
  return { query: lines.join("\n"), parameters };
}

/** The events themselves, the newest first. */
export function eventsOf(
  place: Place,
  { organization, project, window, filter }: Selection,
  { limit, offset }: { limit: number; offset: number },
): Statement {
  const { add, parameters } = collectValues();
  const where = [...owner(organization, project, add), ...filters(filter, add), within("at", window, add)];
  const query = `SELECT toUnixTimestamp64Milli(at) AS ms, status, method, route, path, user_agent, source_ip,
      bytes_received, bytes_sent, latency_us
    FROM ${name(place, "events")}
    WHERE ${where.join(" AND ")}
    ORDER BY at DESC, path, source_ip, status, latency_us, user_agent, method, bytes_sent, bytes_received
    LIMIT ${add("UInt32", limit)} OFFSET ${add("UInt64", offset)}`;
  return { query, parameters };
}

/** What is counted: rows of tables of counts, and of events that are counted the same way. */
function sources(
  place: Place,
  { organization, project, window, filter }: Selection,
  { columns, measures, among }: Counting,
  add: Add,
): string {
  const conditions = [
    ...owner(organization, project, add),
    ...filters(filter, add),
    ...(among ? [`${among.column} IN ${add(typesOf[among.column], among.values)}`] : []),
  ].join(" AND ");
  const { full, edges } = partsOf(window, rollupsFor(columns, filter));
  const counted = measures === "all" ? "requests, received, sent, latency_sum, latency" : "requests";
  const parts = full.map(({ unit, windows }) => {
    const times = windows.map((one) => `(${within(unit.unit, one, add)})`).join(" OR ");
    return `SELECT ${[...columns, counted].join(", ")} FROM ${name(place, unit.table)}
      WHERE ${conditions} AND (${times})`;
  });
  // An empty window has no parts, but an answer.
  if (edges.length > 0 || parts.length === 0) {
    const selected = [...columns, measures === "all" ? countsOfEvents : "count() AS requests"];
    const times = edges.map((edge) => `(${within("at", edge, add)})`).join(" OR ") || "0";
    const grouped = columns.length === 0 ? "" : `GROUP BY ${columns.join(", ")}`;
    parts.push(`SELECT ${selected.join(", ")} FROM ${name(place, "events")}
      WHERE ${conditions} AND (${times}) ${grouped}`);
  }
  return parts.join("\nUNION ALL\n");
}

/** The tables of counts that know of these columns and filters; none for what only the events themselves know. */
function rollupsFor(columns: readonly Column[], { sourceIp, path }: Filter): readonly Rollup[] {
  if (sourceIp !== undefined || path !== undefined) {
    return [];
  }
  const others = columns.filter((column) => column !== "status");
  return others.length > 1 ? [] : rollups.filter(({ column }) => column === others[0]);
}

const typesOf: Record<Column, string> = {
  status: "Array(UInt16)",
  route: "Array(String)",
  user_agent: "Array(String)",
  source_ip: "Array(String)",
};

function owner(organization: string, project: string, add: Add): string[] {
  return [`organization = ${add("String", organization)}`, `project = ${add("String", project)}`];
}

function filters({ statusCode, statusClass, sourceIp, path }: Filter, add: Add): string[] {
  const conditions: string[] = [];
  if (statusCode !== undefined) {
    conditions.push(`status = ${add("UInt16", statusCode)}`);
  }
  if (statusClass !== undefined) {
    conditions.push(`intDiv(status, 100) = ${add("UInt8", statusClass)}`);
  }
  if (sourceIp !== undefined) {
    conditions.push(`source_ip = ${add("String", sourceIp)}`);
  }
  if (path !== undefined) {
    const value = add("String", path);
    conditions.push(`(path = ${value} OR route = ${value})`);
  }
  return conditions;
}

function within(column: "at" | Rollup["unit"], { from, to }: Window, add: Add): string {
  const moment = (ms: number): string =>
    column === "at"
      ? `fromUnixTimestamp64Milli(${add("Int64", ms)}, 'UTC')`
      : `toDateTime(${add("UInt32", ms / 1000)}, 'UTC')`;
  return `${column} >= ${moment(from)} AND ${column} < ${moment(to)}`;
}

import { OTHER } from "./bounds.ts";
import { type CountRow, rowsOf } from "./rows.ts";
import { countsBy, eventsOf, type Selection } from "./statement.ts";
import type { Store } from "./store.ts";

/** Sums over some requests. */
export interface Counts {
  requests: number;
  bytesReceived: number;
  bytesSent: number;
  /** Mean, in milliseconds; null without requests. */
  avgLatencyMs: number | null;
  /** The ceil(0.95 · n)th of the n latencies in ascending order, within 0.4 %, in milliseconds; null without requests. */
  p95LatencyMs: number | null;
}

export interface Summary extends Counts {
  /** Requests by the first digit of their status, 2 to 5. */
  classes: Record<2 | 3 | 4 | 5, number>;
}

/** Numbers of requests by a text; those beyond {@link MOST_NAMED} texts are counted together under {@link OTHER}. */
export type Shares = Record<string, number>;

export interface StatusCounts extends Counts {
  status: number;
  userAgents: Shares;
  routes: Shares;
}

/** An item of the lists by route, user agent or source address. */
export interface NamedCounts extends Counts {
  name: string;
  /** Requests by status. */
  statusCodes: Shares;
}

export interface StoredEvent {
  /** Milliseconds since the epoch. */
  at: number;
  status: number;
  method: string;
  route: string;
  path: string;
  userAgent: string;
  sourceIp: string;
  bytesReceived: number;
  bytesSent: number;
  latencyMs: number;
}

/** A page of a list, from 1. */
export interface Paging {
  page: number;
  limit: number;
}

export interface Page<Item> {
  items: Item[];
  /** Items of all pages. */
  total: number;
}

/** Texts of a map. */
export const MOST_NAMED = 50;

const all = { measures: "all" } as const;

/** @throws StoreUnavailable */
export async function summary(store: Store, selection: Selection): Promise<Summary> {
  const statement = countsBy(store, selection, { ...all, columns: [], classes: true });
  const { rows } = await rowsOf<CountRow>(store, statement);
  const [row] = rows;
  const { class2 = 0, class3 = 0, class4 = 0, class5 = 0 } = row ?? {};
  return { ...countsOf(row), classes: { 2: class2, 3: class3, 4: class4, 5: class5 } };
}

/** Counts of every status, in ascending order. @throws StoreUnavailable */
export async function byStatus(store: Store, selection: Selection): Promise<(Counts & { status: number })[]> {
  const { rows } = await rowsOf<CountRow>(store, countsBy(store, selection, { ...all, columns: ["status"] }));
  const found = rows.map((row) => ({ status: row.status ?? 0, ...countsOf(row) }));
  return found.sort((one, other) => one.status - other.status);
}

/** Requests by user agent. @throws StoreUnavailable */
export async function userAgents(store: Store, selection: Selection): Promise<Shares> {
  const most = { limit: MOST_NAMED, offset: 0 };
  const counting = { measures: "number", columns: ["user_agent"] as const } as const;
  const [{ rows }, every] = await Promise.all([
    rowsOf<CountRow>(store, countsBy(store, selection, { ...counting, most })),
    rowsOf<CountRow>(store, countsBy(store, selection, { measures: "number", columns: [] })),
  ]);
  return shares(
    rows.map((row) => [row.user_agent ?? "", row.n]),
    every.rows[0]?.n ?? 0,
  );
}

/** One page of the statuses, those with the most requests first. @throws StoreUnavailable */
export async function statusCodes(
  store: Store,
  selection: Selection,
  paging: Paging,
): Promise<Page<StatusCounts>> {
  const statement = countsBy(store, selection, { ...all, columns: ["status"], most: limits(paging) });
  const { rows, total } = await rowsOf<CountRow>(store, statement);
  const statuses = rows.map(({ status }) => status ?? 0);
  const [routes, agents] = await Promise.all([
    sharesByStatus(store, selection, "route", statuses),
    sharesByStatus(store, selection, "user_agent", statuses),
  ]);
  const items = rows.map((row) => {
    const { status = 0, n } = row;
    const userAgents = shares(agents.get(status) ?? [], n);
    return { status, ...countsOf(row), userAgents, routes: shares(routes.get(status) ?? [], n) };
  });
  return { items, total };
}

/** One page of the routes, user agents or source addresses, those with the most requests first. @throws StoreUnavailable */
export async function named(
  store: Store,
  selection: Selection,
  column: "route" | "user_agent" | "source_ip",
  paging: Paging,
): Promise<Page<NamedCounts>> {
  const statement = countsBy(store, selection, { ...all, columns: [column], most: limits(paging) });
  const { rows, total } = await rowsOf<CountRow>(store, statement);
  const values = rows.map((row) => row[column] ?? "");
  const counting = { measures: "number", columns: [column, "status"], among: { column, values } } as const;
  const found =
    values.length === 0 ? [] : (await rowsOf<CountRow>(store, countsBy(store, selection, counting))).rows;
  const items = rows.map((row, at) => {
    const own = found.filter((one) => one[column] === values[at]);
    const statusCodes = Object.fromEntries(own.map(({ status, n }) => [String(status), n]));
    return { name: values[at] ?? "", ...countsOf(row), statusCodes };
  });
  return { items, total };
}

/** One page of the events themselves, the newest first. @throws StoreUnavailable */
export async function requestEvents(
  store: Store,
  selection: Selection,
  paging: Paging,
): Promise<Page<StoredEvent>> {
  const [{ rows }, every] = await Promise.all([
    rowsOf<EventRow>(store, eventsOf(store, selection, limits(paging))),
    rowsOf<CountRow>(store, countsBy(store, selection, { measures: "number", columns: [] })),
  ]);
  return { items: rows.map(storedEvent), total: every.rows[0]?.n ?? 0 };
}

interface EventRow {
  ms: number;
  status: number;
  method: string;
  route: string;
  path: string;
  user_agent: string;
  source_ip: string;
  bytes_received: number;
  bytes_sent: number;
  latency_us: number;
}

const storedEvent = (row: EventRow): StoredEvent => ({
  at: row.ms,
  status: row.status,
  method: row.method,
  route: row.route,
  path: row.path,
  userAgent: row.user_agent,
  sourceIp: row.source_ip,
  bytesReceived: row.bytes_received,
  bytesSent: row.bytes_sent,
  latencyMs: row.latency_us / 1000,
});

/** Requests of some statuses by a column: of each status those with the most. */
async function sharesByStatus(
  store: Store,
  selection: Selection,
  column: "route" | "user_agent",
  statuses: number[],
): Promise<Map<number, [string, number][]>> {
  if (statuses.length === 0) {
    return new Map();
  }
  const statement = countsBy(store, selection, {
    measures: "number",
    columns: ["status", column],
    among: { column: "status", values: statuses },
    mostByStatus: MOST_NAMED,
  });
  const { rows } = await rowsOf<CountRow>(store, statement);
  return new Map(
    statuses.map((status) => {
      const own = rows.filter((row) => row.status === status);
      return [status, own.map((row) => [row[column] ?? "", row.n])];
    }),
  );
}

/** @param every requests, also of texts that are not named */
function shares(entries: readonly (readonly [string, number])[], every: number): Shares {
  const named = entries.filter(([name]) => name !== OTHER);
  const left = every - named.reduce((sum, [, n]) => sum + n, 0);
  return Object.fromEntries(left > 0 ? [...named, [OTHER, left]] : named);
}

function limits({ page, limit }: Paging): { limit: number; offset: number } {
  return { limit, offset: (page - 1) * limit };
}

function countsOf(row: CountRow | undefined): Counts {
  const { n: requests = 0, rx: bytesReceived = 0, tx: bytesSent = 0, took = 0, p95 = 0 } = row ?? {};
  if (requests === 0) {
    return { requests, bytesReceived, bytesSent, avgLatencyMs: null, p95LatencyMs: null };
  }
  return {
    requests,
    bytesReceived,
    bytesSent,
    avgLatencyMs: milliseconds(took / requests),
    p95LatencyMs: milliseconds(middleOf(p95)),
  };
}

/** To the microsecond. */
function milliseconds(microseconds: number): number {
  return Math.round(microseconds) / 1000;
}

/** Bits of a bfloat16's fraction, with the one that is not written. */
const PRECISION = 8;

/**
 * The store keeps of a latency the first eight bits. What it returns is the least whole number that begins so; this is the middle of
 * all of them, at most 1/256 away from any. Up to 255 it is exact. Pure.
 */
export function middleOf(stored: number): number {
  const bits = Math.floor(Math.log2(stored)) + 1;
  return stored > 0 && bits > PRECISION ? stored + (2 ** (bits - PRECISION) - 1) / 2 : stored;
}

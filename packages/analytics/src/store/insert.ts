import type { AccessEvent, EventBatch } from "../event.ts";
import { MinuteBounds } from "./bounds.ts";
import { name } from "./schema.ts";
import { ask, type Store } from "./store.ts";

const COLUMNS =
  "organization, project, at, status, method, route, path, user_agent, source_ip, bytes_received, bytes_sent, latency_us";

/**
 * The first and last moments that are stored, in milliseconds since the epoch: seconds of ten digits, since the store takes
 * fewer for a date, and no more than all of the tables' columns take.
 */
export const [FIRST_MS, LAST_MS] = [1_000_000_000_000, 0xffff_ffff * 1000];

/** Bytes of one insert. The embedded store cuts longer ones, and takes the second piece of a token for the first one again. */
const MOST_BYTES = 6 * 1024 * 1024;

/**
 * Inserts a batch: all of it or nothing once this returns or has been tried again, and once however often it is tried, in the
 * table of events and in those of minutes. A batch that is too long for one insert is cut at the same places every time.
 * @throws StoreUnavailable when the batch is to be tried again; ClickHouseError when it never will be taken
 */
export async function insertEvents(store: Store, { id, events }: EventBatch): Promise<void> {
  const bounds = new MinuteBounds();
  const rows = events.values().map((event) => rowOf(bounds.bound(event)));
  await insertRows(store, { table: "events", columns: COLUMNS }, id, rows);
}

/**
 * Inserts rows (each as JSON) under an id, as {@link insertEvents} does with events.
 * @throws StoreUnavailable when the batch is to be tried again; ClickHouseError when it never will be taken
 */
export async function insertRows(
  store: Store,
  to: { table: string; columns: string },
  id: string,
  rows: Iterable<string>,
): Promise<void> {
  let part = 0;
  for (const lines of pieces(rows)) {
    const token = part === 0 ? id : `${id}#${part}`;
    part += 1;
    await ask(() => insert(store, to, token, lines));
  }
}

function insert(
  store: Store,
  { table, columns }: { table: string; columns: string },
  token: string,
  lines: string,
): Promise<unknown> {
  return store.client.command({
    query: `INSERT INTO ${name(store, table)} (${columns}) FORMAT JSONCompactEachRow\n${lines}`,
    clickhouse_settings: {
      async_insert: 0,
      insert_deduplicate: 1,
      insert_deduplication_token: token,
      // A view whose insert was cut off by a crash takes what is left out of the table of events itself.
      deduplicate_blocks_in_dependent_materialized_views: 1,
      // Events of a clock that was wrong must not hold up the others.
      max_partitions_per_insert_block: "0",
    },
  });
}

/** Rows on lines, in pieces that one insert takes. */
function* pieces(rows: Iterable<string>): Generator<string> {
  let held: string[] = [];
  let bytes = 0;
  for (const line of rows) {
    const length = Buffer.byteLength(line) + 1;
    if (held.length > 0 && bytes + length > MOST_BYTES) {
      yield held.join("\n");
      held = [];
      bytes = 0;
    }
    held.push(line);
    bytes += length;
  }
  if (held.length > 0) {
    yield held.join("\n");
  }
}

function rowOf(event: AccessEvent): string {
  return JSON.stringify([
    event.organization,
    event.project,
    (Math.max(count(Math.min(event.at, LAST_MS)), FIRST_MS) / 1000).toFixed(3),
    event.status,
    event.method,
    event.route.toWellFormed(),
    event.path.toWellFormed(),
    event.userAgent.toWellFormed(),
    event.sourceIp,
    count(event.bytesReceived),
    count(event.bytesSent),
    count(event.latencyUs),
  ]);
}

/** A whole number: a column of them takes nothing else, and one event would hold up all that come with it. */
export function count(value: number): number {
  return Number.isFinite(value) ? Math.min(Math.max(0, Math.round(value)), Number.MAX_SAFE_INTEGER) : 0;
}

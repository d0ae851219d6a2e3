import { addAbortSignal, type Readable } from "node:stream";
import type { Counting, Statement } from "./statement.ts";
import { ask, type Store } from "./store.ts";

/** One row of counts, as {@link Counting} selects it. */
export interface CountRow {
  status?: number;
  route?: string;
  user_agent?: string;
  source_ip?: string;
  n: number;
  rx: number;
  tx: number;
  /** Microseconds of all requests. */
  took: number;
  p95: number;
  class2: number;
  class3: number;
  class4: number;
  class5: number;
}

/** What one query may take: no project keeps the store from the others. */
const LIMITS = {
  // Reads alone, and the settings below.
  readonly: "2",
  // A closed connection ends the query.
  cancel_http_readonly_queries_on_client_close: 1,
  timeout_overflow_mode: "throw",
  max_memory_usage: "1000000000",
  max_threads: 2,
  output_format_json_quote_64bit_integers: 0,
  exact_rows_before_limit: 1,
} as const;

/** How long the store works at one query. */
const MOST_SECONDS = 10;

/** Bytes of an answer, which is kept whole while it is read: many times the longest of the API's own queries. */
const MOST_BYTES = 8 * 1024 * 1024;

/** What a query may read of the tables, before anything is left out of it. */
export interface ReadLimit {
  rows: number;
  bytes: number;
}

export interface QueryOptions {
  /** After which the store gives it up. */
  seconds?: number;
  /** Beyond which the store gives it up; without one only time and memory end it. */
  read?: ReadLimit;
  /** Cancels it. */
  signal?: AbortSignal;
}

/**
 * Rows of a statement, and how many there would be without its LIMIT.
 * @throws StoreUnavailable, also when it is cancelled, and for an answer of more than 8 MiB
 */
export async function rowsOf<Row>(
  { client }: Store,
  { query, parameters }: Statement,
  { seconds = MOST_SECONDS, read, signal }: QueryOptions = {},
): Promise<{ rows: Row[]; total: number }> {
  const answer = await ask(async () => {
    const { stream } = await client.exec({
      query: `${query}\nFORMAT JSON`,
      query_params: parameters,
      clickhouse_settings: {
        ...LIMITS,
        max_execution_time: seconds,
        ...(read && { max_rows_to_read: String(read.rows), max_bytes_to_read: String(read.bytes) }),
      },
      abort_signal: signal,
    });
    // The client itself heeds the signal until the answer begins.
    return JSON.parse(await textOf(signal ? addAbortSignal(signal, stream) : stream)) as Answer<Row>;
  });
  return { rows: answer.data, total: answer.rows_before_limit_at_least ?? answer.data.length };
}

/** What is used of ClickHouse's format JSON. */
interface Answer<Row> {
  data: Row[];
  rows_before_limit_at_least?: number;
}

/** A body as text. @throws RangeError once it has more than {@link MOST_BYTES}: the rest of it is not read */
async function textOf(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) {
      throw new RangeError(`the answer has more than ${MOST_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** For which the store may work at how much is free: it is asked at each scrape of metrics. */
const FREE_SECONDS = 1;

/**
 * Bytes that are free on the disk of the store's tables; the smallest number of several disks, and on a cluster that of the member that answers.
 * @returns null where no table has a row yet
 * @throws StoreUnavailable
 */
export async function freeBytes(store: Store): Promise<number | null> {
  const query = `SELECT minOrNull(free_space) AS free FROM system.disks
    WHERE name IN (SELECT disk_name FROM system.parts WHERE database = {p0:String} AND active)`;
  const statement = { query, parameters: { p0: store.database } };
  const { rows } = await rowsOf<{ free: number | null }>(store, statement, { seconds: FREE_SECONDS });
  return rows[0]?.free ?? null;
}

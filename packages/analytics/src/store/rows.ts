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
  timeout_overflow_mode: "throw",
  max_memory_usage: "1000000000",
  max_threads: 2,
  output_format_json_quote_64bit_integers: 0,
  exact_rows_before_limit: 1,
} as const;

/** How long the store works at one query. */
const MOST_SECONDS = 10;

/**
 * Rows of a statement, and how many there would be without its LIMIT.
 * @param seconds after which the store gives it up
 * @throws StoreUnavailable
 */
export async function rowsOf<Row>(
  { client }: Store,
  { query, parameters }: Statement,
  seconds = MOST_SECONDS,
): Promise<{ rows: Row[]; total: number }> {
  const answer = await ask(async () => {
    const found = await client.query({
      query,
      query_params: parameters,
      format: "JSON",
      clickhouse_settings: { ...LIMITS, max_execution_time: seconds },
    });
    return found.json<Row>();
  });
  return { rows: answer.data, total: answer.rows_before_limit_at_least ?? answer.data.length };
}

import { readFileSync } from "node:fs";
import { readRows, type Store } from "@slipway/analytics";
import type { TestClickHouse } from "../kit/servers/clickhouse.ts";

/** Milliseconds of the same SQL in both ways. */
export interface EngineRun {
  what: string;
  slipwayMs: number;
  engineMs: number;
}

/** Counts over whole tables: of the events one by one, and of the minutes that they were put into. */
const STATEMENTS = [
  [
    "every event",
    (database: string) =>
      `SELECT status, count() AS n, sum(bytes_received) AS rx, sum(bytes_sent) AS tx, sum(latency_us) AS took,
        quantileBFloat16(0.95)(latency_us) AS p95 FROM ${database}.events GROUP BY status`,
  ],
  [
    "every minute",
    (database: string) =>
      `SELECT status, sum(requests) AS n, sum(received) AS rx, sum(sent) AS tx, sum(latency_sum) AS took,
        quantileBFloat16Merge(0.95)(latency) AS p95 FROM ${database}.minutes GROUP BY status`,
  ],
] as const;

/** Whole tables by the store's own way and by bare HTTP, in turns; the medians. */
export async function wholeTable(
  store: Store,
  { url, username, passwordFile }: TestClickHouse,
  rounds: number,
): Promise<EngineRun[]> {
  const headers = {
    "X-ClickHouse-User": username,
    "X-ClickHouse-Key": readFileSync(passwordFile, "utf8").trim(),
  };
  const runs: EngineRun[] = [];
  for (const [what, sql] of STATEMENTS) {
    const query = sql(store.database);
    const ways = {
      slipway: () => readRows(store, { query, parameters: {} }),
      engine: async () => {
        const answer = await fetch(`${url}/?max_threads=2`, {
          method: "POST",
          headers,
          body: `${query} FORMAT JSON`,
        });
        if (!answer.ok) {
          throw new Error(await answer.text());
        }
        await answer.json();
      },
    };
    const took: Record<keyof typeof ways, number[]> = { slipway: [], engine: [] };
    // The first one reads from the disk what the others find in memory.
    for (let round = -1; round < rounds * 3; round++) {
      for (const way of ["slipway", "engine"] as const) {
        const start = performance.now();
        await ways[way]();
        if (round >= 0) {
          took[way].push(performance.now() - start);
        }
      }
    }
    const median = (list: number[]): number =>
      list.sort((one, other) => one - other)[Math.floor(list.length / 2)] ?? Number.NaN;
    runs.push({ what, slipwayMs: median(took.slipway), engineMs: median(took.engine) });
  }
  return runs;
}

import { rowsOf } from "./rows.ts";
import type { Store } from "./store.ts";

/** For which the store may work at it: it is asked at each scrape of metrics. */
const MOST_SECONDS = 1;

/**
 * Bytes that are free on the disk of the store's tables; the smallest number of several disks, and on a cluster that of the member that answers.
 * @returns null where no table has a row yet
 * @throws StoreUnavailable
 */
export async function freeBytes(store: Store): Promise<number | null> {
  const query = `SELECT minOrNull(free_space) AS free FROM system.disks
    WHERE name IN (SELECT disk_name FROM system.parts WHERE database = {p0:String} AND active)`;
  const statement = { query, parameters: { p0: store.database } };
  const { rows } = await rowsOf<{ free: number | null }>(store, statement, MOST_SECONDS);
  return rows[0]?.free ?? null;
}

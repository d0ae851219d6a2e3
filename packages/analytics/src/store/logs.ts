import type { LogBatch, LogEvent } from "../log-line.ts";
import { count, FIRST_MS, insertRows, LAST_MS } from "./insert.ts";
import type { Store } from "./store.ts";

/** Lines of instances' logs, inserted in batches. `log-search.ts` finds them. */

const COLUMNS =
  "organization, project, at, instance, container, stream, level, text, continues, file, offset, omitted_lines, " +
  "omitted_bytes, lost_files, days, drainable";

/**
 * Inserts a batch as `insertEvents` does: whole, and once however often it is tried.
 * @throws StoreUnavailable when the batch is to be tried again; ClickHouseError when it never will be taken
 */
export async function insertLogs(store: Store, { id, events }: LogBatch): Promise<void> {
  await insertRows(store, { table: "logs", columns: COLUMNS }, id, events.values().map(rowOf));
}

function rowOf(event: LogEvent): string {
  return JSON.stringify([
    event.organization,
    event.project,
    seconds(BigInt(event.at)),
    event.instance,
    event.container,
    event.stream,
    event.level ?? "",
    event.text.toWellFormed(),
    event.continues,
    event.file,
    count(event.offset),
    count(event.omittedLines),
    count(event.omittedBytes),
    count(event.lostFiles),
    event.days,
    // The store itself says when: by its clock drains read them.
    true,
  ]);
}

const MS = 1_000_000n;

/** Nanoseconds as the store reads a moment: seconds of ten digits. */
function seconds(nanoseconds: bigint): string {
  const [first, last] = [BigInt(FIRST_MS) * MS, BigInt(LAST_MS) * MS];
  const digits = String(nanoseconds < first ? first : nanoseconds > last ? last : nanoseconds);
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`;
}

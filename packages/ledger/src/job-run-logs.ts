import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { type JobRunKey, scheduledMinute } from "./job-run-rows.ts";
import { withPartitions } from "./partitions.ts";

/** Longest log of a run in bytes of UTF-8: 50 KiB. */
export const MAX_LOG_BYTES = 51_200;

export interface JobRunLogName {
  organization_id: string;
  project_id: string;
  id: string;
  scheduled_at: Date;
}

/**
 * Keeps the end of a run's log: what does not fit is cut off in front, between two characters; NUL, which PostgreSQL cannot
 * hold, is left out. Stored again, the later text replaces the earlier one.
 *
 * @throws RangeError when the id is none of a run of the project
 */
export async function storeJobRunLog(ledger: Ledger, name: JobRunLogName, text: string): Promise<void> {
  const { organization_id, project_id, id } = name;
  const minute = scheduledMinute({ organizationId: organization_id, projectId: project_id, id });
  if (minute === undefined) {
    throw new RangeError("not the id of a run of this project");
  }
  const store = () =>
    sql`
      insert into job_run_logs (organization_id, project_id, id, scheduled_minute, log)
      values (${organization_id}, ${project_id}, ${id}, ${minute}, ${endOfLog(text)})
      on conflict (organization_id, project_id, id, scheduled_minute)
      do update set log = excluded.log, stored_at = excluded.stored_at`.execute(ledger);
  await withPartitions(ledger, [minute], store);
}

/** The log that was stored for a run; undefined when there is none. */
export async function readJobRunLog(ledger: Ledger, key: JobRunKey): Promise<string | undefined> {
  const minute = scheduledMinute(key);
  if (minute === undefined) {
    return undefined;
  }
  const { rows } = await sql<{ log: string }>`
    select log from job_run_logs
    where organization_id = ${key.organizationId} and project_id = ${key.projectId} and id = ${key.id}
      and scheduled_minute = ${minute}`.execute(ledger);
  return rows[0]?.log;
}

/** The last {@link MAX_LOG_BYTES} of a text, well-formed and without NUL. */
export function endOfLog(text: string): string {
  const bytes = Buffer.from(text.replaceAll("\0", ""), "utf8");
  if (bytes.length <= MAX_LOG_BYTES) {
    return bytes.toString("utf8");
  }
  let start = bytes.length - MAX_LOG_BYTES;
  // Bytes 10xxxxxx continue a character.
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) {
    start += 1;
  }
  return bytes.subarray(start).toString("utf8");
}

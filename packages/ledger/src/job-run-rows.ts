import { equalDecimal, type JobRunStatus, jobRunName, parseDecimal } from "@slipway/crds";
import { sql } from "kysely";

/** What was measured of a run; of a one-off run of an application its exit code, too. */
export type JobRunMetricsJson = NonNullable<JobRunStatus["metrics"]> & { exitCode?: number };

export type TerminalJobRunStatus = "succeeded" | "failed" | "deadline_exceeded" | "cancelled";

/** A run that has ended, with what it costs. Times count to the millisecond; money is BRL cents, a plain decimal. */
export interface JobRunRow {
  organization_id: string;
  project_id: string;
  project_uid: string;
  /** As {@link jobRunName} says, or the ledger refuses it. */
  id: string;
  trigger: "schedule" | "manual";
  /** A whole minute for an occurrence of the schedule. */
  scheduled_at: Date;
  started_at: Date;
  finished_at: Date;
  /** Between `started_at` and `finished_at`. */
  billed_until: Date;
  status: TerminalJobRunStatus;
  billed_minutes: number;
  plan: string;
  price_per_minute: string;
  /** Exactly `billed_minutes` times `price_per_minute`. */
  amount: string;
  metrics: JobRunMetricsJson | null;
}

/** Names a run in the ledger. */
export interface JobRunKey {
  organizationId: string;
  projectId: string;
  id: string;
}

/** The columns of a {@link JobRunRow}, from `job_runs` under the alias `r`. */
export const jobRunColumns = sql`r.organization_id, r.project_id, r.project_uid, r.id, r.trigger,
  r.scheduled_at, r.started_at, r.finished_at, r.billed_until, r.status, r.billed_minutes, r.plan,
  trim_scale(r.price_per_minute)::text as price_per_minute, trim_scale(r.amount)::text as amount, r.metrics`;

const texts = ["project_uid", "id", "trigger", "status", "billed_minutes", "plan"] as const;
const times = ["scheduled_at", "started_at", "finished_at", "billed_until"] as const;
const decimals = ["price_per_minute", "amount"] as const;

/** The billing fields in which two rows of one key differ. */
export function differences(a: JobRunRow, b: JobRunRow): string[] {
  return [
    ...texts.filter((field) => a[field] !== b[field]),
    ...times.filter((field) => a[field].getTime() !== b[field].getTime()),
    ...decimals.filter((field) => !equalDecimal(parseDecimal(a[field]), parseDecimal(b[field]))),
  ];
}

/**
 * The scheduled minute in a run's id, which determines its partition. Undefined for what is no id of a
 * run of this project.
 */
export function scheduledMinute({ projectId, id }: JobRunKey): Date | undefined {
  if (!id.startsWith(`${projectId}-`)) {
    return undefined;
  }
  const minutes = /^([0-9]{1,9})(-[a-z0-9]{1,10})?$/.exec(id.slice(projectId.length + 1))?.[1];
  if (minutes === undefined) {
    return undefined;
  }
  const at = new Date(Number(minutes) * 60_000);
  return jobRunName(projectId, at) === `${projectId}-${minutes}` ? at : undefined;
}

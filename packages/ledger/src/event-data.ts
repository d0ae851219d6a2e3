/** The events of what the ledger itself records. Pure. */

import type { JobRunRow } from "./job-run-rows.ts";
import type { NotificationEvent } from "./notification-event.ts";
import type { Build, Deployment } from "./schema.ts";

/** Most characters of a message in an event. */
const MESSAGE_MAX_LENGTH = 1_024;

const shown = (message: string | null): string | undefined =>
  message === null ? undefined : message.slice(0, MESSAGE_MAX_LENGTH);

const at = (moment: Date | null): string | undefined => moment?.toISOString();

/** The end of a deployment that succeeded or failed; one that failed may come to serve, which is another event. */
export function deploymentEvent(row: Deployment): NotificationEvent | undefined {
  const { status } = row;
  if (status !== "succeeded" && status !== "failed") {
    return undefined;
  }
  return {
    organizationId: row.organization_id,
    projectId: row.project_id,
    type: `deployment.${status}`,
    key: `${row.project_uid ?? row.project_id}/${row.id}`,
    occurredAt: row.finished_at ?? row.created_at,
    data: {
      deployment_id: row.id,
      image: row.image,
      digest: row.digest ?? undefined,
      message: shown(row.message),
      started_at: at(row.created_at),
      finished_at: at(row.finished_at),
    },
  };
}

/** The end of a build that succeeded or failed. */
export function buildEvent(
  row: Omit<Build, "updated_at" | "log_truncated" | "ran_from" | "ran_until">,
): NotificationEvent | undefined {
  const { status } = row;
  if (status !== "success" && status !== "failed") {
    return undefined;
  }
  return {
    organizationId: row.organization_id,
    projectId: row.project_id,
    type: status === "success" ? "build.succeeded" : "build.failed",
    key: `${row.project_uid}/${row.id}`,
    occurredAt: row.finished_at ?? row.created_at,
    data: {
      build_id: row.id,
      branch: row.branch ?? undefined,
      tag: row.tag ?? undefined,
      commit_sha: row.commit_sha ?? undefined,
      error_code: row.error_code ?? undefined,
      message: shown(row.error_message),
      started_at: at(row.started_at),
      finished_at: at(row.finished_at),
    },
  };
}

/** A run that failed, or was stopped at its limit. */
export function runEvent(row: JobRunRow): NotificationEvent | undefined {
  const { status } = row;
  if (status !== "failed" && status !== "deadline_exceeded") {
    return undefined;
  }
  // In a batch that was read from JSON, moments are texts.
  const [scheduled, started, finished] = [row.scheduled_at, row.started_at, row.finished_at].map(
    (moment) => new Date(moment),
  ) as [Date, Date, Date];
  return {
    organizationId: row.organization_id,
    projectId: row.project_id,
    type: "run.failed",
    key: `${row.project_uid}/${row.id}`,
    occurredAt: finished,
    data: {
      run_id: row.id,
      trigger: row.trigger,
      status,
      scheduled_at: at(scheduled),
      started_at: at(started),
      finished_at: at(finished),
    },
  };
}

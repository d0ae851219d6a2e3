/** A build's row in the ledger. Pure. */

import type { Build, Project } from "@slipway/crds";
import type { BuildRow } from "@slipway/ledger";
import { organizationOfBuild } from "./names.ts";
import { requestedAt } from "./queue.ts";

/** @param logTruncated whether the log was cut, where that is known */
export function buildRow(
  build: Build,
  project: Project,
  status: NonNullable<Build["status"]>,
  logTruncated?: boolean,
): BuildRow {
  const { metadata, spec } = build;
  const moment = (text: string | undefined) => (text === undefined ? null : new Date(text));
  return {
    organization_id: organizationOfBuild(build),
    project_id: project.metadata.name,
    project_uid: project.metadata.uid ?? "",
    id: metadata.name,
    triggered_by: spec.triggeredBy,
    branch: spec.branch ?? null,
    tag: spec.tag ?? null,
    commit_sha: status.commitSha ?? spec.commitSha ?? null,
    commit_message: status.commitMessage ?? null,
    status: status.phase ?? "pending",
    digest: status.image?.digest ?? null,
    error_code: status.errorCode ?? null,
    error_message: status.errorMessage ?? null,
    ...(logTruncated ? { log_truncated: true } : {}),
    created_at: new Date(requestedAt(build)),
    started_at: moment(status.startedAt),
    finished_at: moment(status.finishedAt),
    ran_from: moment(status.ranFrom),
    ran_until: moment(status.ranUntil),
  };
}

/** Whether a status changes the build's row. */
export function changesRow(before: Build["status"], after: NonNullable<Build["status"]>): boolean {
  const recorded = (status: Build["status"]) =>
    JSON.stringify([
      status?.phase,
      status?.commitSha,
      status?.startedAt,
      status?.image?.digest,
      status?.finishedAt,
    ]);
  return recorded(before) !== recorded(after);
}

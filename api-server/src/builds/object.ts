import { type Build, type BuildRequest, organizationOfNamespace, type Project } from "@slipway/crds";
import type { BuildRow } from "@slipway/ledger";

/** What a build is requested with; its commit is resolved. */
export interface KnownRequest extends BuildRequest {
  commitSha: string;
  /** First line of the commit's message. */
  commitMessage?: string;
}

/** The ledger's row of a build that was requested just now. Pure. */
export function pendingRow({ metadata, spec }: Build, project: Project, commitMessage?: string): BuildRow {
  const { namespace = "", name, uid = "" } = project.metadata;
  return {
    organization_id: organizationOfNamespace(namespace) ?? "",
    project_id: name,
    project_uid: uid,
    id: metadata.name,
    triggered_by: spec.triggeredBy,
    branch: spec.branch ?? null,
    tag: spec.tag ?? null,
    commit_sha: spec.commitSha ?? null,
    commit_message: commitMessage?.slice(0, 256) ?? null,
    status: "pending",
    digest: null,
    error_code: null,
    error_message: null,
    created_at: new Date(spec.requestedAt ?? metadata.creationTimestamp ?? 0),
    started_at: null,
    finished_at: null,
  };
}

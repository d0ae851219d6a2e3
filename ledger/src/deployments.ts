import type { Ledger } from "./connect.ts";
import type { Deployment, DeploymentStatus } from "./schema.ts";

const OPEN_TO_SUCCESS: readonly DeploymentStatus[] = ["in_progress", "failed"];

/**
 * Writes a deployment, or what has become of it. Idempotent, and in any order: once the ledger has a final status the
 * row stays as it is, except that a failed deployment may come to serve after all.
 */
export async function recordDeployment(ledger: Ledger, row: Deployment): Promise<void> {
  await ledger
    .insertInto("deployments")
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(["organization_id", "project_id", "id"])
        .doUpdateSet({
          finished_at: row.finished_at,
          status: row.status,
          updated_image: row.updated_image,
          image: row.image,
          digest: row.digest,
          settings_hash: row.settings_hash,
          message: row.message,
        })
        .where("deployments.status", "in", row.status === "succeeded" ? OPEN_TO_SUCCESS : ["in_progress"]),
    )
    .execute();
}

export interface DeploymentQuery {
  organizationId: string;
  projectId: string;
  /** First moment that counts. */
  from: Date;
  /** First moment that no longer counts. */
  to: Date;
  /** Most rows. Default 1,000. */
  limit?: number;
}

/** A project's deployments that were created in the window, newest first. */
export async function listDeployments(ledger: Ledger, query: DeploymentQuery): Promise<Deployment[]> {
  return ledger
    .selectFrom("deployments")
    .selectAll()
    .where("organization_id", "=", query.organizationId)
    .where("project_id", "=", query.projectId)
    .where("created_at", ">=", query.from)
    .where("created_at", "<", query.to)
    .orderBy("created_at", "desc")
    .orderBy("id", "desc")
    .limit(query.limit ?? 1_000)
    .execute();
}

/** One deployment of a project, however old; undefined when there never was one of this id. */
export async function findDeployment(
  ledger: Ledger,
  query: { organizationId: string; projectId: string; id: string },
): Promise<Deployment | undefined> {
  return ledger
    .selectFrom("deployments")
    .selectAll()
    .where("organization_id", "=", query.organizationId)
    .where("project_id", "=", query.projectId)
    .where("id", "=", query.id)
    .executeTakeFirst();
}

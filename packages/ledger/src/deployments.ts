import { type ExpressionBuilder, sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { deploymentEvent } from "./event-data.ts";
import type { Deployment, DeploymentStatus, LedgerSchema } from "./schema.ts";
import { recordOwnEvents } from "./webhook-events.ts";

const OPEN_TO_SUCCESS: readonly DeploymentStatus[] = ["in_progress", "failed"];

/**
 * Writes a deployment, or what has become of it. Idempotent, and in any order: once the ledger has a final status the
 * row stays as it is, except that a failed deployment may come to serve after all. The event of its end is recorded with it.
 */
export async function recordDeployment(ledger: Ledger, row: Deployment): Promise<void> {
  const event = deploymentEvent(row);
  if (event === undefined) {
    await writeDeployment(ledger, row);
    return;
  }
  await ledger.transaction().execute(async (tx) => {
    if (await writeDeployment(tx, row)) {
      await recordOwnEvents(tx, [event]);
    }
  });
}

/** @returns whether the row is new, or another than before */
async function writeDeployment(ledger: Ledger, row: Deployment): Promise<boolean> {
  const { numInsertedOrUpdatedRows = 0n } = await ledger
    .insertInto("deployments")
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(["organization_id", "project_id", "id"])
        .doUpdateSet({
          project_uid: row.project_uid,
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
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows > 0n;
}

/** One project: not another of the same name, which was deleted before. */
export interface DeployedProject {
  organizationId: string;
  projectId: string;
  projectUid: string;
}

export interface DeploymentQuery extends DeployedProject {
  /** First moment that counts. */
  from: Date;
  /** First moment that no longer counts. */
  to: Date;
  /** Most rows. Default 1,000. */
  limit?: number;
  /** Rows to leave out, the newest first. */
  offset?: number;
}

/** Rows of earlier versions have no uid of their project: they count for the project that has the name now. */
const ofProject =
  ({ organizationId, projectId, projectUid }: DeployedProject) =>
  (eb: ExpressionBuilder<LedgerSchema, "deployments">) =>
    eb.and([
      eb("organization_id", "=", organizationId),
      eb("project_id", "=", projectId),
      eb.or([eb("project_uid", "is", null), eb("project_uid", "=", projectUid)]),
    ]);

/** A project's deployments that were created in the window, newest first. */
export async function listDeployments(ledger: Ledger, query: DeploymentQuery): Promise<Deployment[]> {
  return ledger
    .selectFrom("deployments")
    .selectAll()
    .where(ofProject(query))
    .where("created_at", ">=", query.from)
    .where("created_at", "<", query.to)
    .orderBy("created_at", "desc")
    .orderBy("id", "desc")
    .limit(query.limit ?? 1_000)
    .offset(query.offset ?? 0)
    .execute();
}

/** How many deployments of a project were created in the window. */
export async function countDeployments(ledger: Ledger, query: DeploymentQuery): Promise<number> {
  const { count } = await ledger
    .selectFrom("deployments")
    .select(sql<number>`count(*)::int`.as("count"))
    .where(ofProject(query))
    .where("created_at", ">=", query.from)
    .where("created_at", "<", query.to)
    .executeTakeFirstOrThrow();
  return count;
}

/** One deployment of a project, however old; undefined when there never was one of this id. */
export async function findDeployment(
  ledger: Ledger,
  query: DeployedProject & { id: string },
): Promise<Deployment | undefined> {
  return ledger
    .selectFrom("deployments")
    .selectAll()
    .where(ofProject(query))
    .where("id", "=", query.id)
    .executeTakeFirst();
}

/** Names a deployment. */
export type DeploymentKey = Pick<Deployment, "organization_id" | "project_id" | "id">;

/** Deployments that began at least so long ago, by the database's clock, and have not ended; oldest first. */
export async function listOpenDeployments(
  ledger: Ledger,
  idleSeconds: number,
  limit = 1_000,
): Promise<DeploymentKey[]> {
  return ledger
    .selectFrom("deployments")
    .select(["organization_id", "project_id", "id"])
    .where("status", "=", "in_progress")
    .where("created_at", "<=", sql<Date>`now() - make_interval(secs => ${idleSeconds})`)
    .orderBy("created_at")
    .limit(limit)
    .execute();
}

/**
 * Ends a deployment that nobody is left to end, as superseded and now; one that has ended stays as it is.
 * @returns whether there was one to end
 */
export async function supersedeDeployment(ledger: Ledger, key: DeploymentKey): Promise<boolean> {
  const result = await ledger
    .updateTable("deployments")
    .set({ status: "superseded", finished_at: sql<Date>`now()` })
    .where("organization_id", "=", key.organization_id)
    .where("project_id", "=", key.project_id)
    .where("id", "=", key.id)
    .where("status", "=", "in_progress")
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

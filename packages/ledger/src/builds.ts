import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { buildEvent } from "./event-data.ts";
import type { Build, BuildStatus, RetiredImage } from "./schema.ts";
import { recordOwnEvents } from "./webhook-events.ts";

/** Names a project; another one of the same id has another uid. */
export interface BuildProject {
  organizationId: string;
  projectId: string;
  projectUid: string;
}

type OptionalColumn = "log_truncated" | "ran_from" | "ran_until";

/** What is written of a build: `updated_at` is the ledger's own. */
export type BuildRow = Omit<Build, "updated_at" | OptionalColumn> & Partial<Pick<Build, OptionalColumn>>;

/** How far each state is. One that is final is never left. */
const RANK: Record<BuildStatus, number> = { pending: 0, building: 1, success: 2, failed: 2, superseded: 2 };

/**
 * Writes a build, or what has become of it. Idempotent, and in any order: a state that is further than what is kept takes its
 * place, or the same one that is not final with what is new of it; a final state stays as it is. The event of its end is recorded with it.
 *
 * @returns whether the ledger has it so now; false when it keeps a state that is further, or another final one
 */
export async function recordBuild(ledger: Ledger, row: BuildRow): Promise<boolean> {
  const event = buildEvent(row);
  const isWritten =
    event === undefined
      ? await writeBuild(ledger, row)
      : await ledger.transaction().execute(async (tx) => {
          const isNew = await writeBuild(tx, row);
          if (isNew) {
            await recordOwnEvents(tx, [event]);
          }
          return isNew;
        });
  if (isWritten) {
    return true;
  }
  const { organization_id, project_id, project_uid, id } = row;
  const kept = await findBuild(ledger, {
    organizationId: organization_id,
    projectId: project_id,
    projectUid: project_uid,
    id,
  });
  return kept?.status === row.status;
}

/** @returns whether the row is new, or another than before */
async function writeBuild(ledger: Ledger, row: BuildRow): Promise<boolean> {
  const now = sql<Date>`now()`;
  const { organization_id, project_id, id, created_at, triggered_by, project_uid, ...changes } = row;
  const before = (Object.keys(RANK) as BuildStatus[]).filter(
    (status) => RANK[status] < 2 && RANK[status] <= RANK[row.status],
  );
  const { numInsertedOrUpdatedRows } = await ledger
    .insertInto("builds")
    .values({ ...row, updated_at: now })
    .onConflict((conflict) =>
      conflict
        .columns(["organization_id", "project_id", "id"])
        .doUpdateSet({ ...changes, updated_at: now })
        .where("builds.status", "in", before)
        .where("builds.project_uid", "=", project_uid),
    )
    .executeTakeFirstOrThrow();
  return (numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** One build of a project; undefined when there is none of this id, or not any more. */
export async function findBuild(
  ledger: Ledger,
  { id, ...project }: BuildProject & { id: string },
): Promise<Build | undefined> {
  return ofProject(ledger, project).selectAll().where("id", "=", id).executeTakeFirst();
}

export interface BuildListQuery extends BuildProject {
  branch?: string;
  status?: BuildStatus;
  offset: number;
  limit: number;
}

/** One page of a project's builds, the newest first, and how many match on whatever page. */
export async function listBuilds(
  ledger: Ledger,
  { branch, status, offset, limit, ...project }: BuildListQuery,
): Promise<{ total: number; builds: Build[] }> {
  let matching = ofProject(ledger, project);
  if (branch !== undefined) {
    matching = matching.where("branch", "=", branch);
  }
  if (status !== undefined) {
    matching = matching.where("status", "=", status);
  }
  const { total } = await matching
    .select(({ fn }) => fn.countAll<string>().as("total"))
    .executeTakeFirstOrThrow();
  const builds = await matching
    .selectAll()
    .orderBy("created_at", "desc")
    .orderBy("id")
    .offset(offset)
    .limit(limit)
    .execute();
  return { total: Number(total), builds };
}

/** Most builds that a project's history has, and days that one stays in it. */
export const BUILD_HISTORY = { builds: 30, days: 30 } as const;

/**
 * Forgets builds that have ended and are over the limits of their project's history, with their logs. Their images are recorded
 * as retired in the same transaction, unless another build that stays has the same one.
 *
 * @param project the one whose history is pruned; all of them without it
 * @returns how many were forgotten
 */
export async function retireBuilds(ledger: Ledger, now: Date, project?: BuildProject): Promise<number> {
  const { builds, days } = BUILD_HISTORY;
  const oldest = new Date(now.getTime() - days * 86_400_000);
  const of = project
    ? sql`organization_id = ${project.organizationId} and project_id = ${project.projectId} and project_uid = ${project.projectUid}`
    : sql`true`;
  const { rows } = await sql<{ forgotten: string }>`
    with aged as (
      select organization_id, project_id, id, finished_at, row_number() over (
        partition by organization_id, project_id, project_uid order by created_at desc, id) as place
      from builds where ${of}
    ), gone as (
      delete from builds b using aged a
      where (b.organization_id, b.project_id, b.id) = (a.organization_id, a.project_id, a.id)
        and a.finished_at is not null and (a.place > ${builds} or a.finished_at < ${oldest})
      returning b.organization_id, b.project_id, b.id, b.digest
    ), retired as (
      insert into retired_images (organization_id, project_id, digest)
      select distinct organization_id, project_id, digest from gone
      where digest is not null and not exists (
        select from builds b where (b.organization_id, b.project_id, b.digest) = (gone.organization_id, gone.project_id, gone.digest)
          and not exists (select from gone g where (g.organization_id, g.project_id, g.id) = (b.organization_id, b.project_id, b.id)))
      on conflict do nothing
    )
    select count(*) as forgotten from gone`.execute(ledger);
  return Number(rows[0]?.forgotten ?? 0);
}

/** Images that no build of the history has any more, the oldest first: the caller knows which still run or may be rolled back to. */
export async function listRetiredImages(ledger: Ledger, limit = 1_000): Promise<RetiredImage[]> {
  return ledger
    .selectFrom("retired_images as r")
    .selectAll("r")
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("builds as b")
            .select("b.id")
            .whereRef("b.organization_id", "=", "r.organization_id")
            .whereRef("b.project_id", "=", "r.project_id")
            .whereRef("b.digest", "=", "r.digest"),
        ),
      ),
    )
    .orderBy("retired_at")
    .limit(limit)
    .execute();
}

/** Drops the note of an image that is in the registry no more. */
export async function forgetRetiredImage(
  ledger: Ledger,
  { organization_id, project_id, digest }: Omit<RetiredImage, "retired_at">,
): Promise<void> {
  await ledger
    .deleteFrom("retired_images")
    .where("organization_id", "=", organization_id)
    .where("project_id", "=", project_id)
    .where("digest", "=", digest)
    .execute();
}

function ofProject(ledger: Ledger, { organizationId, projectId, projectUid }: BuildProject) {
  return ledger
    .selectFrom("builds")
    .where("organization_id", "=", organizationId)
    .where("project_id", "=", projectId)
    .where("project_uid", "=", projectUid);
}

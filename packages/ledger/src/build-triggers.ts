import { sql } from "kysely";
import type { Ledger } from "./connect.ts";

/** What a publication began with. */
export interface BuildTrigger {
  organizationId: string;
  projectUid: string;
  /** `push`, `tag` or `release`. */
  trigger: string;
  /** Full name of the branch or tag. */
  ref: string;
  commitSha: string;
}

/**
 * Claims a trigger for a build, for a hook's delivery or a poll, whichever is first. The later one is given the same build,
 * and makes it if a crash kept the first one from it.
 *
 * @returns the build's id: `buildId`, or the one that claimed it before; null when it was only recorded as present
 */
export async function claimBuildTrigger(
  ledger: Ledger,
  trigger: BuildTrigger,
  buildId: string,
): Promise<string | null> {
  await note(ledger, [trigger], buildId);
  return claimedBy(ledger, trigger);
}

/** How long after a poll recorded a trigger its hook's delivery may still claim it, in minutes. */
const DELIVERY_MINUTES = 10;

/**
 * Claims a trigger that a hook's delivery reports. What is delivered is new: a poll that recorded it shortly before, as present when
 * the project's publication began, only arrived earlier than the delivery.
 *
 * @returns as {@link claimBuildTrigger}; null when it was recorded longer than ten minutes ago
 */
export async function claimDeliveredTrigger(
  ledger: Ledger,
  trigger: BuildTrigger,
  buildId: string,
): Promise<string | null> {
  const { organizationId, projectUid, trigger: kind, ref, commitSha } = trigger;
  await sql`
    insert into build_triggers (organization_id, project_uid, trigger, ref, commit_sha, build_id)
    values (${organizationId}, ${projectUid}, ${kind}, ${ref}, ${commitSha}, ${buildId})
    on conflict (organization_id, project_uid, trigger, ref, commit_sha)
    do update set build_id = excluded.build_id
    where build_triggers.build_id is null
      and build_triggers.seen_at > now() - make_interval(mins => ${DELIVERY_MINUTES})`.execute(ledger);
  return claimedBy(ledger, trigger);
}

async function claimedBy(ledger: Ledger, trigger: BuildTrigger): Promise<string | null> {
  const { build_id } = await ledger
    .selectFrom("build_triggers")
    .select("build_id")
    .where("organization_id", "=", trigger.organizationId)
    .where("project_uid", "=", trigger.projectUid)
    .where("trigger", "=", trigger.trigger)
    .where("ref", "=", trigger.ref)
    .where("commit_sha", "=", trigger.commitSha)
    .executeTakeFirstOrThrow();
  return build_id;
}

/** A trigger that was claimed or recorded, by whom and when. */
export interface KnownBuildTrigger extends BuildTrigger {
  /** Null when it was only recorded as present. */
  buildId: string | null;
  seenAt: Date;
}

/** Those of some triggers of one project that are known. */
export async function findBuildTriggers(
  ledger: Ledger,
  project: Pick<BuildTrigger, "organizationId" | "projectUid">,
  triggers: readonly Pick<BuildTrigger, "trigger" | "ref" | "commitSha">[],
): Promise<KnownBuildTrigger[]> {
  const requested = JSON.stringify(
    triggers.map(({ trigger, ref, commitSha }) => ({ trigger, ref, sha: commitSha })),
  );
  const { rows } = await sql<{
    trigger: string;
    ref: string;
    commit_sha: string;
    build_id: string | null;
    seen_at: Date;
  }>`
    select b.trigger, b.ref, b.commit_sha, b.build_id, b.seen_at
    from build_triggers b join jsonb_to_recordset(${requested}::jsonb) as a (trigger text, ref text, sha text)
      on b.trigger = a.trigger and b.ref = a.ref and b.commit_sha = a.sha
    where b.organization_id = ${project.organizationId} and b.project_uid = ${project.projectUid}`.execute(
    ledger,
  );
  return rows.map(({ trigger, ref, commit_sha, build_id, seen_at }) => ({
    ...project,
    trigger,
    ref,
    commitSha: commit_sha,
    buildId: build_id,
    seenAt: seen_at,
  }));
}

/** Records what exists already, so that it starts no build: the tags and releases when a project begins to publish by them. */
export async function recordBuildTriggers(ledger: Ledger, triggers: readonly BuildTrigger[]): Promise<void> {
  const most = 5_000;
  for (let start = 0; start < triggers.length; start += most) {
    await note(ledger, triggers.slice(start, start + most), null);
  }
}

async function note(
  ledger: Ledger,
  triggers: readonly BuildTrigger[],
  buildId: string | null,
): Promise<void> {
  await ledger
    .insertInto("build_triggers")
    .values(
      triggers.map(({ organizationId, projectUid, trigger, ref, commitSha }) => ({
        organization_id: organizationId,
        project_uid: projectUid,
        trigger,
        ref,
        commit_sha: commitSha,
        build_id: buildId,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Names a hook's delivery, as its sender does. */
export interface GitDelivery {
  organizationId: string;
  connectionId: string;
  deliveryId: string;
}

/** Whether a delivery was dealt with before. */
export async function isGitDeliveryKnown(ledger: Ledger, delivery: GitDelivery): Promise<boolean> {
  const known = await ledger
    .selectFrom("git_deliveries")
    .select("delivery_id")
    .where("organization_id", "=", delivery.organizationId)
    .where("connection_id", "=", delivery.connectionId)
    .where("delivery_id", "=", delivery.deliveryId)
    .executeTakeFirst();
  return known !== undefined;
}

/** Records that a delivery was processed, afterwards, so that a crash in between has it processed again. */
export async function recordGitDelivery(ledger: Ledger, delivery: GitDelivery): Promise<void> {
  await ledger
    .insertInto("git_deliveries")
    .values({
      organization_id: delivery.organizationId,
      connection_id: delivery.connectionId,
      delivery_id: delivery.deliveryId,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Forgets deliveries that came before a moment. @returns how many */
export async function retireGitDeliveries(ledger: Ledger, before: Date): Promise<number> {
  const { numDeletedRows } = await ledger
    .deleteFrom("git_deliveries")
    .where("received_at", "<", before)
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

import { sql, type Transaction } from "kysely";
import type { Ledger } from "./connect.ts";
import type { LedgerSchema, ProjectSlot } from "./schema.ts";

/**
 * One row for every active project: not paused, not deleted. What may exist only so many times is counted here, in one
 * transaction under a lock, for the API and for kubectl alike.
 */
export interface SlotRequest {
  organizationId: string;
  projectId: string;
  plan: string;
  /** The plan's countable limit: plans of one scope share `max` slots of an organization. */
  limit?: { scope: string; max: number };
  /** What the project takes of the limit: its instances, or 1. */
  slots: number;
}

export type SlotAnswer =
  /** `version`: of this taking; {@link releaseSlot} of it leaves alone what was taken later. */
  | { taken: true; version: string }
  /** `used`: what the organization's other projects hold of `max`. */
  | { taken: false; reason: "limit"; used: number; max: number }
  /** `limit`: the active projects that the plan may have over all organizations. */
  | { taken: false; reason: "capacity"; limit: number };

/**
 * Takes a project's slot, or changes the one it holds: to another plan, to more or fewer slots. The project's own row
 * is not counted against it, and what it holds already is never refused: neither the same plan for a capacity that was
 * lowered since, nor no more slots than before for a limit that was. A refused change leaves the old row.
 */
export function takeSlot(ledger: Ledger, wanted: SlotRequest): Promise<SlotAnswer> {
  return take(ledger, wanted, () => true) as Promise<SlotAnswer>;
}

/**
 * Takes a slot as {@link takeSlot} does, in place of the very one that a change took in vain.
 * @returns undefined, and changes nothing, when the project holds no slot of this version: it was taken again since
 */
export function retakeSlot(
  ledger: Ledger,
  wanted: SlotRequest,
  inVain: string,
): Promise<SlotAnswer | undefined> {
  return take(ledger, wanted, (held) => held?.version === inVain);
}

function take(
  ledger: Ledger,
  wanted: SlotRequest,
  expected: (held: ProjectSlot | undefined) => boolean,
): Promise<SlotAnswer | undefined> {
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      // The order of locks, the same for everybody: limit, capacity, row. Each statement after a lock sees what its
      // last holder committed.
      if (wanted.limit) {
        await lockScope(transaction, wanted.organizationId, wanted.limit.scope);
      }
      const capacity = await lockCapacity(transaction, wanted.plan);
      const held = await lockHeld(transaction, wanted);
      if (!expected(held)) {
        return undefined;
      }
      const refusal =
        (await overLimit(transaction, wanted, held)) ??
        (await overCapacity(transaction, wanted, held, capacity));
      if (refusal) {
        return refusal;
      }
      return { taken: true, version: await write(transaction, wanted) };
    });
}

async function lockScope(
  transaction: Transaction<LedgerSchema>,
  organizationId: string,
  scope: string,
): Promise<void> {
  const key = `slots ${organizationId} ${scope}`;
  await sql`select pg_advisory_xact_lock(hashtextextended(${key}, 0))`.execute(transaction);
}

/** The plan's capacity, its row locked; undefined, and no lock, for a plan without one. */
async function lockCapacity(
  transaction: Transaction<LedgerSchema>,
  plan: string,
): Promise<number | undefined> {
  const row = await transaction
    .selectFrom("plan_capacities")
    .select("max_projects")
    .where("plan", "=", plan)
    .forUpdate()
    .executeTakeFirst();
  return row?.max_projects;
}

async function lockHeld(
  transaction: Transaction<LedgerSchema>,
  { organizationId, projectId }: SlotRequest,
): Promise<ProjectSlot | undefined> {
  return transaction
    .selectFrom("project_slots")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .where("project_id", "=", projectId)
    .forUpdate()
    .executeTakeFirst();
}

async function overLimit(
  transaction: Transaction<LedgerSchema>,
  { organizationId, projectId, limit, slots }: SlotRequest,
  held: ProjectSlot | undefined,
): Promise<SlotAnswer | undefined> {
  if (!limit || (held?.scope === limit.scope && slots <= held.slots)) {
    return undefined;
  }
  const { used } = await transaction
    .selectFrom("project_slots")
    .select(sql<number>`coalesce(sum(slots), 0)::int`.as("used"))
    .where("organization_id", "=", organizationId)
    .where("scope", "=", limit.scope)
    .where("project_id", "!=", projectId)
    .executeTakeFirstOrThrow();
  return used + slots > limit.max ? { taken: false, reason: "limit", used, max: limit.max } : undefined;
}

async function overCapacity(
  transaction: Transaction<LedgerSchema>,
  { plan }: SlotRequest,
  held: ProjectSlot | undefined,
  capacity: number | undefined,
): Promise<SlotAnswer | undefined> {
  if (capacity === undefined || held?.plan === plan) {
    return undefined;
  }
  const { used } = await transaction
    .selectFrom("project_slots")
    .select(sql<number>`count(*)::int`.as("used"))
    .where("plan", "=", plan)
    .executeTakeFirstOrThrow();
  return used >= capacity ? { taken: false, reason: "capacity", limit: capacity } : undefined;
}

/** @returns the version of this taking: later than all that the row had before, since the row is locked */
async function write(transaction: Transaction<LedgerSchema>, wanted: SlotRequest): Promise<string> {
  const values = { plan: wanted.plan, scope: wanted.limit?.scope ?? null, slots: wanted.slots };
  const { version } = await transaction
    .insertInto("project_slots")
    .values({ organization_id: wanted.organizationId, project_id: wanted.projectId, ...values })
    .onConflict((conflict) =>
      conflict.columns(["organization_id", "project_id"]).doUpdateSet({
        ...values,
        taken_at: sql<Date>`now()`,
        version: sql<string>`nextval('project_slot_versions')`,
      }),
    )
    .returning("version")
    .executeTakeFirstOrThrow();
  return version;
}

/** What a slot must be like to be released; a project may have taken it again for a change that comes after. */
export interface ReleaseCondition {
  /** Only as it was taken then, or before. */
  version?: string;
  /** Only when it was last asked for at least so long ago, by the database's clock. */
  idleSeconds?: number;
}

/**
 * Gives a project's slot back; a project without one is no error.
 * @returns whether there was one to release
 */
export async function releaseSlot(
  ledger: Ledger,
  projectId: string,
  organizationId: string,
  { version, idleSeconds = 0 }: ReleaseCondition = {},
): Promise<boolean> {
  let query = ledger
    .deleteFrom("project_slots")
    .where("organization_id", "=", organizationId)
    .where("project_id", "=", projectId);
  if (version !== undefined) {
    query = query.where("version", "<=", version);
  }
  if (idleSeconds > 0) {
    query = query.where("taken_at", "<=", sql<Date>`now() - make_interval(secs => ${idleSeconds})`);
  }
  const result = await query.executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** The version of the slot that a project holds; undefined when it holds none. */
export async function findSlotVersion(
  ledger: Ledger,
  projectId: string,
  organizationId: string,
): Promise<string | undefined> {
  const row = await ledger
    .selectFrom("project_slots")
    .select("version")
    .where("organization_id", "=", organizationId)
    .where("project_id", "=", projectId)
    .executeTakeFirst();
  return row?.version;
}

/** A slot, and for how many seconds nobody has asked for it, by the database's clock. */
export interface HeldSlot extends ProjectSlot {
  idle_seconds: number;
}

/** Every slot, oldest first. */
export async function listSlots(ledger: Ledger): Promise<HeldSlot[]> {
  return ledger
    .selectFrom("project_slots")
    .selectAll()
    .select(sql<number>`extract(epoch from now() - taken_at)::float8`.as("idle_seconds"))
    .orderBy("taken_at")
    .orderBy("project_id")
    .execute();
}

/** Limits the active projects of a plan over all organizations; null for no limit. What is active stays so. */
export async function setPlanCapacity(ledger: Ledger, plan: string, max: number | null): Promise<void> {
  if (max === null) {
    await ledger.deleteFrom("plan_capacities").where("plan", "=", plan).execute();
    return;
  }
  await ledger
    .insertInto("plan_capacities")
    .values({ plan, max_projects: max })
    .onConflict((conflict) => conflict.column("plan").doUpdateSet({ max_projects: max }))
    .execute();
}

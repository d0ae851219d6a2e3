import { sql, type Transaction } from "kysely";
import type { Ledger } from "./connect.ts";
import type { LedgerSchema, QuotaReservationRow } from "./schema.ts";

/**
 * What an active project, neither paused nor deleted, needs of its organization's limit and of its plan's capacity. It has
 * one row, counted in one transaction under a lock, for the API and for kubectl alike.
 */
export interface QuotaRequest {
  organizationId: string;
  projectId: string;
  plan: string;
  /** The plan's countable limit: plans of one scope share `max` of an organization. */
  limit?: { scope: string; max: number };
  /** How much of the limit the project uses: its instances, or 1. */
  amount: number;
}

export type QuotaDecision =
  /** `version`: of this reservation; {@link releaseQuota} with it keeps a later one. */
  | { reserved: true; version: string }
  /** `used`: what the organization's other projects have reserved of `max`. */
  | { reserved: false; reason: "limit"; used: number; max: number }
  /** `limit`: the active projects that the plan may have over all organizations. */
  | { reserved: false; reason: "capacity"; limit: number };

/**
 * Reserves a project's quota, or changes its reservation to another plan or amount. The project's own row is not counted
 * against it, and what it has reserved is never rejected after a capacity or a limit was lowered: the same plan, and no
 * larger amount. A rejected change keeps the row.
 */
export function reserveQuota(ledger: Ledger, wanted: QuotaRequest): Promise<QuotaDecision> {
  return reserve(ledger, wanted, () => true) as Promise<QuotaDecision>;
}

/**
 * Reserves as {@link reserveQuota} does, if the project still has the reservation of a change that failed.
 * @param unused version of that reservation
 * @returns undefined, and changes nothing, when the project has no reservation of this version: it was reserved again since
 */
export function replaceQuotaReservation(
  ledger: Ledger,
  wanted: QuotaRequest,
  unused: string,
): Promise<QuotaDecision | undefined> {
  return reserve(ledger, wanted, (current) => current?.version === unused);
}

function reserve(
  ledger: Ledger,
  wanted: QuotaRequest,
  expected: (current: QuotaReservationRow | undefined) => boolean,
): Promise<QuotaDecision | undefined> {
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      // Every caller locks in the same order: limit, capacity, row. Each statement after a lock sees what its last holder
      // committed.
      if (wanted.limit) {
        await lockScope(transaction, wanted.organizationId, wanted.limit.scope);
      }
      const capacity = await lockCapacity(transaction, wanted.plan);
      const current = await lockReservation(transaction, wanted);
      if (!expected(current)) {
        return undefined;
      }
      const refusal =
        (await overLimit(transaction, wanted, current)) ??
        (await overCapacity(transaction, wanted, current, capacity));
      if (refusal) {
        return refusal;
      }
      return { reserved: true, version: await write(transaction, wanted) };
    });
}

async function lockScope(
  transaction: Transaction<LedgerSchema>,
  organizationId: string,
  scope: string,
): Promise<void> {
  // Versions that run side by side share this key.
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

async function lockReservation(
  transaction: Transaction<LedgerSchema>,
  { organizationId, projectId }: QuotaRequest,
): Promise<QuotaReservationRow | undefined> {
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
  { organizationId, projectId, limit, amount }: QuotaRequest,
  current: QuotaReservationRow | undefined,
): Promise<QuotaDecision | undefined> {
  if (!limit || (current?.scope === limit.scope && amount <= current.slots)) {
    return undefined;
  }
  const { used } = await transaction
    .selectFrom("project_slots")
    .select(sql<number>`coalesce(sum(slots), 0)::int`.as("used"))
    .where("organization_id", "=", organizationId)
    .where("scope", "=", limit.scope)
    .where("project_id", "!=", projectId)
    .executeTakeFirstOrThrow();
  return used + amount > limit.max ? { reserved: false, reason: "limit", used, max: limit.max } : undefined;
}

async function overCapacity(
  transaction: Transaction<LedgerSchema>,
  { plan }: QuotaRequest,
  current: QuotaReservationRow | undefined,
  capacity: number | undefined,
): Promise<QuotaDecision | undefined> {
  if (capacity === undefined || current?.plan === plan) {
    return undefined;
  }
  const { used } = await transaction
    .selectFrom("project_slots")
    .select(sql<number>`count(*)::int`.as("used"))
    .where("plan", "=", plan)
    .executeTakeFirstOrThrow();
  return used >= capacity ? { reserved: false, reason: "capacity", limit: capacity } : undefined;
}

/** @returns the version of this reservation: later than all that the row had before, since the row is locked */
async function write(transaction: Transaction<LedgerSchema>, wanted: QuotaRequest): Promise<string> {
  const values = { plan: wanted.plan, scope: wanted.limit?.scope ?? null, slots: wanted.amount };
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

/** Which reservation is released: a project may have reserved again for a later change. */
export interface ReleaseCondition {
  /** Only one of this version or an earlier one. */
  version?: string;
  /** Only one that was last requested at least so long ago, by the database's clock. */
  idleSeconds?: number;
}

/**
 * Releases a project's reservation; a project without one is no error.
 * @returns whether one was released
 */
export async function releaseQuota(
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

/** The version of a project's reservation; undefined when it has none. */
export async function findQuotaVersion(
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

/** A reservation, and the seconds since it was last requested, by the database's clock. */
export interface QuotaReservation extends QuotaReservationRow {
  idle_seconds: number;
}

/** Every reservation, oldest first. */
export async function listQuotaReservations(ledger: Ledger): Promise<QuotaReservation[]> {
  return ledger
    .selectFrom("project_slots")
    .selectAll()
    .select(sql<number>`extract(epoch from now() - taken_at)::float8`.as("idle_seconds"))
    .orderBy("taken_at")
    .orderBy("project_id")
    .execute();
}

/** Limits the active projects of a plan over all organizations; null for no limit. Active projects stay active. */
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

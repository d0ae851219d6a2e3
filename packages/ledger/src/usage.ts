import { sql, type Transaction } from "kysely";
import type { Ledger } from "./connect.ts";
import type { LedgerSchema, UsageKind } from "./schema.ts";

/*
 * What an organization has of what it may have only so much of, paused projects included. The API reserves before it writes
 * the cluster; the operator adds what kubectl wrote, and removes what is deleted.
 */

/** One thing that counts: a project, the custom domains of a project, a Secret of variables. */
export interface Usage {
  kind: UsageKind;
  /** The project's id, or the Secret's name. */
  name: string;
  /** 1, a number of domains, or bytes. */
  amount: number;
}

/** The first ceiling that does not admit the request, or none. */
export type UsageAnswer =
  | { reserved: true }
  /** `used`: what all others of the organization have of `limit`. */
  | { reserved: false; kind: UsageKind; used: number; limit: number };

/** Most of each kind that one organization may have. */
export type UsageLimits = Readonly<Record<UsageKind, number>>;

/**
 * Reserves all of it or nothing, in one transaction under a lock of the organization: of two at the same time never both
 * take the last. What has the same name is replaced. No more than before of a name is never refused, also when a limit was
 * lowered since.
 */
export function reserveUsage(
  ledger: Ledger,
  organizationId: string,
  wanted: readonly Usage[],
  limits: UsageLimits,
): Promise<UsageAnswer> {
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      await lock(transaction, organizationId);
      for (const kind of new Set(wanted.map((one) => one.kind))) {
        const refusal = await overLimit(
          transaction,
          organizationId,
          kind,
          wanted.filter((one) => one.kind === kind),
          limits[kind],
        );
        if (refusal) {
          return refusal;
        }
      }
      await write(transaction, organizationId, wanted);
      return { reserved: true };
    });
}

/** One writer of an organization's account at a time: of two that write the same rows in different orders, one would fail. */
async function lock(transaction: Transaction<LedgerSchema>, organizationId: string): Promise<void> {
  const key = `usage ${organizationId}`;
  await sql`select pg_advisory_xact_lock(hashtextextended(${key}, 0))`.execute(transaction);
}

async function overLimit(
  transaction: Transaction<LedgerSchema>,
  organizationId: string,
  kind: UsageKind,
  wanted: readonly Usage[],
  limit: number,
): Promise<UsageAnswer | undefined> {
  const names = wanted.map(({ name }) => name);
  const { others, own } = await transaction
    .selectFrom("organization_usage")
    .select([
      sql<string>`coalesce(sum(amount) filter (where name <> all (${names})), 0)`.as("others"),
      sql<string>`coalesce(sum(amount) filter (where name = any (${names})), 0)`.as("own"),
    ])
    .where("organization_id", "=", organizationId)
    .where("kind", "=", kind)
    .executeTakeFirstOrThrow();
  const requested = wanted.reduce((sum, { amount }) => sum + amount, 0);
  const used = Number(others);
  if (requested <= Number(own) || used + requested <= limit) {
    return undefined;
  }
  return { reserved: false, kind, used, limit };
}

/** Usage of any organization, as the operator finds it in the cluster. */
export interface OrganizationUsage extends Usage {
  organizationId: string;
}

/** Writes what exists, whatever the limits. */
export async function recordUsage(ledger: Ledger, found: readonly OrganizationUsage[]): Promise<void> {
  const byOrganization = Map.groupBy(found, ({ organizationId }) => organizationId);
  for (const [organizationId, usage] of byOrganization) {
    await ledger.transaction().execute(async (transaction) => {
      await lock(transaction, organizationId);
      await write(transaction, organizationId, usage);
    });
  }
}

async function write(ledger: Ledger, organizationId: string, usage: readonly Usage[]): Promise<void> {
  if (usage.length === 0) {
    return;
  }
  await ledger
    .insertInto("organization_usage")
    .values(usage.map(({ kind, name, amount }) => ({ organization_id: organizationId, kind, name, amount })))
    .onConflict((conflict) =>
      conflict.columns(["organization_id", "kind", "name"]).doUpdateSet((update) => ({
        amount: update.ref("excluded.amount"),
        reserved_at: sql<Date>`now()`,
      })),
    )
    .execute();
}

/**
 * Removes what is not there any more.
 * @param idleSeconds only what was last reserved at least so long ago, by the database's clock: what is reserved is written
 *   a moment later
 */
export async function releaseUsage(
  ledger: Ledger,
  removed: readonly Pick<OrganizationUsage, "organizationId" | "kind" | "name">[],
  idleSeconds = 0,
): Promise<void> {
  for (const { organizationId, kind, name } of removed) {
    await ledger
      .deleteFrom("organization_usage")
      .where("organization_id", "=", organizationId)
      .where("kind", "=", kind)
      .where("name", "=", name)
      .where("reserved_at", "<=", sql<Date>`now() - make_interval(secs => ${idleSeconds})`)
      .execute();
  }
}

/** Everything that is reserved, and for how many seconds it is, by the database's clock. */
export async function listUsage(ledger: Ledger): Promise<(OrganizationUsage & { idleSeconds: number })[]> {
  const rows = await ledger
    .selectFrom("organization_usage")
    .select(["organization_id", "kind", "name", "amount"])
    .select(sql<number>`extract(epoch from now() - reserved_at)::float8`.as("idle_seconds"))
    .execute();
  return rows.map(({ organization_id, kind, name, amount, idle_seconds }) => ({
    organizationId: organization_id,
    kind,
    name,
    amount: Number(amount),
    idleSeconds: idle_seconds,
  }));
}

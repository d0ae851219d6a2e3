import { sql } from "kysely";
import type { Ledger } from "./connect.ts";

/** Days after an organization's last claim of a hostname until it may reserve it as if for the first time. */
export const RESERVATION_KEPT_DAYS = 30;

/** A claim of an organization on a custom domain that it has not proved. */
export interface UnprovedClaim {
  organizationId: string;
  hostname: string;
  claimedAt: Date;
}

/**
 * Records a claim, and answers when the organization first claimed the hostname: what was removed and added again since is
 * still the same reservation. Recording twice is a no-op.
 */
export async function firstClaimOf(ledger: Ledger, claim: UnprovedClaim): Promise<Date> {
  const { organizationId, hostname, claimedAt } = claim;
  const { rows } = await sql<{ first_claimed_at: Date }>`
    insert into domain_reservations as known (organization_id, hostname, first_claimed_at, last_claimed_at)
    values (${organizationId}, ${hostname}, ${claimedAt}, ${claimedAt})
    on conflict (organization_id, hostname) do update set
      first_claimed_at = least(known.first_claimed_at, excluded.first_claimed_at),
      last_claimed_at = greatest(known.last_claimed_at, excluded.last_claimed_at)
    returning first_claimed_at`.execute(ledger);
  return rows[0]?.first_claimed_at ?? claimedAt;
}

/** Forgets a reservation that has ended with a proof. */
export async function forgetReservation(
  ledger: Ledger,
  { organizationId, hostname }: Pick<UnprovedClaim, "organizationId" | "hostname">,
): Promise<void> {
  await ledger
    .deleteFrom("domain_reservations")
    .where("organization_id", "=", organizationId)
    .where("hostname", "=", hostname)
    .execute();
}

/** Forgets what nobody has claimed for {@link RESERVATION_KEPT_DAYS} days. @returns how many */
export async function retireReservations(ledger: Ledger, now: Date): Promise<number> {
  const before = new Date(now.getTime() - RESERVATION_KEPT_DAYS * 86_400_000);
  const { numDeletedRows } = await ledger
    .deleteFrom("domain_reservations")
    .where("last_claimed_at", "<", before)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

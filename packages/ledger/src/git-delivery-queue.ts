import { sql } from "kysely";
import { type GitDelivery, isGitDeliveryKnown, recordGitDelivery } from "./build-triggers.ts";
import type { Ledger } from "./connect.ts";

/** Deliveries of hooks wait here from their answer until they are worked off, by whichever replica has time. */

/** Deliveries that may wait: of one organization, and of one connection. */
export interface DeliveryQueueLimits {
  perOrganization: number;
  perConnection: number;
}

/** A delivery that a replica works at. */
export interface LeasedDelivery extends GitDelivery {
  sequence: string;
  event: string;
  /** This try counted. A delivery that another replica has claimed meanwhile has another count. */
  attempts: number;
}

/** Puts a delivery into the queue, unless it is queued, was processed, or too many wait. */
export function queueGitDelivery(
  ledger: Ledger,
  delivery: GitDelivery,
  event: string,
  limits: DeliveryQueueLimits,
): Promise<"queued" | "duplicate" | "full"> {
  const { organizationId, connectionId, deliveryId } = delivery;
  return ledger.transaction().execute(async (tx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`git-deliveries ${organizationId}`}, 0))`.execute(
      tx,
    );
    if (await isGitDeliveryKnown(tx, delivery)) {
      return "duplicate";
    }
    const { rows } = await sql<{ same: number; connection: number; organization: number }>`
      select count(*) filter (where connection_id = ${connectionId} and delivery_id = ${deliveryId})::int as same,
        count(*) filter (where connection_id = ${connectionId})::int as connection,
        count(*)::int as organization
      from git_delivery_queue where organization_id = ${organizationId}`.execute(tx);
    const [{ same, connection, organization } = { same: 0, connection: 0, organization: 0 }] = rows;
    if (same > 0) {
      return "duplicate";
    }
    if (connection >= limits.perConnection || organization >= limits.perOrganization) {
      return "full";
    }
    await tx
      .insertInto("git_delivery_queue")
      .values({
        organization_id: organizationId,
        connection_id: connectionId,
        delivery_id: deliveryId,
        event,
      })
      .execute();
    return "queued";
  });
}

/**
 * Leases deliveries that are due: those of a replica that is killed are processed by another once their lease has expired. The organization of which fewest
 * are worked at goes first, in the order of arrival. Of one connection one at a time is worked at: of two tags that come together the
 * one that came last would otherwise be built first, and the other one in its place.
 * @param bounds how many at most, and how many of one organization are worked at by all replicas together
 */
export function leaseGitDeliveries(
  ledger: Ledger,
  { most, perOrganization, leaseMs }: { most: number; perOrganization: number; leaseMs: number },
): Promise<LeasedDelivery[]> {
  return ledger.transaction().execute(async (tx) => {
    // One after the other, or two replicas would each give an organization its whole share.
    await sql`select pg_advisory_xact_lock(hashtextextended('git-deliveries', 1))`.execute(tx);
    const { rows } = await sql<LeasedDelivery>`
      with held as (
        select organization_id, count(*) as n from git_delivery_queue where held_until > now() group by 1
      ), first as (
        select distinct on (organization_id, connection_id) sequence, organization_id, connection_id
        from git_delivery_queue where due_at <= now() order by organization_id, connection_id, sequence
      ), due as (
        select sequence, coalesce(n, 0)
          + row_number() over (partition by organization_id order by sequence) as place
        from first left join held using (organization_id)
        where not exists (
          select from git_delivery_queue busy
          where busy.organization_id = first.organization_id and busy.connection_id = first.connection_id
            and busy.held_until > now()
        )
      ), chosen as (
        select queue.sequence from git_delivery_queue queue join due using (sequence)
        where place <= ${perOrganization}
        order by place, sequence limit ${most} for update of queue skip locked
      )
      update git_delivery_queue set attempts = attempts + 1,
        held_until = now() + ${leaseMs}::int * interval '1 millisecond'
      where sequence in (select sequence from chosen)
      returning sequence, organization_id as "organizationId", connection_id as "connectionId",
        delivery_id as "deliveryId", event, attempts`.execute(tx);
    return rows.toSorted((a, b) => Number(a.sequence) - Number(b.sequence));
  });
}

/** Removes a processed delivery, whose id is kept. One that another replica has claimed stays its own. */
export function finishGitDelivery(ledger: Ledger, delivery: LeasedDelivery): Promise<void> {
  return ledger.transaction().execute(async (tx) => {
    await recordGitDelivery(tx, delivery);
    await dropGitDelivery(tx, delivery);
  });
}

/** Removes an abandoned delivery: it may be sent again. */
export async function dropGitDelivery(ledger: Ledger, { sequence, attempts }: LeasedDelivery): Promise<void> {
  await ledger
    .deleteFrom("git_delivery_queue")
    .where("sequence", "=", sequence)
    .where("attempts", "=", attempts)
    .execute();
}

/** Has a delivery tried again later. */
export async function postponeGitDelivery(
  ledger: Ledger,
  { sequence, attempts }: LeasedDelivery,
  afterMs: number,
): Promise<void> {
  await sql`
    update git_delivery_queue set held_until = null, due_at = now() + ${Math.round(afterMs)}::int * interval '1 millisecond'
    where sequence = ${sequence} and attempts = ${attempts}`.execute(ledger);
}

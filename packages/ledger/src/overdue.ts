import { type RawBuilder, sql } from "kysely";
import type { Ledger } from "./connect.ts";
import type { Page } from "./invoices.ts";
import type { NotificationEvent } from "./notification-event.ts";
import {
  longestNotice,
  type OverdueStep,
  type OverdueTerms,
  overdueStep,
  type UnpaidInvoice,
} from "./overdue-rule.ts";
import { recordOwnEvents } from "./webhook-events.ts";

/** Notifies of unpaid invoices, and blocks organizations for them: each step in one transaction with its events. */

const DAY_MS = 86_400_000;

/** Some invoices `i` with what was paid and credited of them, of which something is open. */
const unpaid = (which: RawBuilder<unknown>) => sql`
  (select invoices.* from unpaid_invoices u join invoices on invoices.number = u.invoice_number where ${which}) i
    cross join lateral (
      select coalesce(sum(case kind when 'payment' then amount_cents else -amount_cents end), 0) as cents,
        count(*) filter (where kind = 'reversal') as reversals
      from invoice_payments where invoice_number = i.number) p
    cross join lateral (select coalesce(sum(total_cents), 0) as cents from credit_notes where invoice_number = i.number) n
  where i.total_cents > p.cents + n.cents`;

const isWaived = sql`exists (select from overdue_waivers w where w.invoice_number = i.number)`;

/** By the ledger's time, or by that of what notified of it. */
const isOverdue = sql`(i.due_at < now() or exists (
  select from overdue_notices o where o.invoice_number = i.number and o.notice like 'overdue/%'))`;

interface Row {
  organization_id: string;
  number: string;
  currency: string;
  open_cents: string;
  due_at: Date;
  reversals: string;
  notices: { notice: string; recorded_at: string; blocks_at: string }[];
  waived: boolean;
  blocked: boolean;
}

/** Unpaid invoices of some organizations that are due by then, the oldest first. */
async function listUnpaid(
  ledger: Ledger,
  organizationIds: readonly string[],
  dueBefore: Date,
): Promise<UnpaidInvoice[]> {
  const { rows } = await sql<Row>`
    select i.organization_id, i.number, i.currency, i.total_cents - p.cents - n.cents as open_cents, i.due_at, p.reversals,
      ${isWaived} as waived,
      exists (select from overdue_blocks b where b.organization_id = i.organization_id) as blocked,
      (select coalesce(json_agg(json_build_object('notice', o.notice, 'recorded_at', o.recorded_at, 'blocks_at', o.blocks_at)), '[]')
        from overdue_notices o where o.invoice_number = i.number) as notices
    from ${unpaid(sql`u.organization_id = any (${organizationIds}::text[]) and u.due_at <= ${dueBefore}`)}
    order by i.organization_id, i.cycle_start`.execute(ledger);
  return rows.map((row) => ({
    organizationId: row.organization_id,
    number: row.number,
    currency: row.currency,
    openCents: BigInt(row.open_cents),
    dueAt: row.due_at,
    reversals: Number(row.reversals),
    notices: new Map(
      row.notices.map((one) => [
        one.notice,
        { recordedAt: new Date(one.recorded_at), blocksAt: new Date(one.blocks_at) },
      ]),
    ),
    isWaived: row.waived,
    isBlocked: row.blocked,
  }));
}

const horizon = (terms: OverdueTerms, now: Date) => new Date(now.getTime() + longestNotice(terms) * DAY_MS);

/** One page of organizations that have unpaid invoices, in the order of their ids. Fewer than the limit: the last page. */
export async function listUnpaidOrganizations(
  ledger: Ledger,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select distinct organization_id as id from unpaid_invoices u
    where organization_id > ${after} and exists (select from organizations o where o.id = u.organization_id)
    order by organization_id limit ${limit}`.execute(ledger);
  return rows.map(({ id }) => id);
}

/** Of some organizations, those with an invoice of which something is to be recorded. */
export async function listOverdueOrganizations(
  ledger: Ledger,
  organizationIds: readonly string[],
  terms: OverdueTerms,
  now: Date,
): Promise<string[]> {
  const invoices = await listUnpaid(ledger, organizationIds, horizon(terms, now));
  const due = invoices.filter((invoice) => overdueStep(invoice, terms, now) !== undefined);
  return [...new Set(due.map(({ organizationId }) => organizationId))];
}

/** How many notices and blocks were recorded. */
export interface RecordedOverdue {
  notices: number;
  blocks: number;
}

/** Records what is due of an organization's invoices, with its events, in one transaction: once each, whatever is repeated or concurrent. */
export function recordOverdue(
  ledger: Ledger,
  organizationId: string,
  terms: OverdueTerms,
  now: Date,
): Promise<RecordedOverdue> {
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      await lockOrganization(transaction, sql`${organizationId}`);
      const events: NotificationEvent[] = [];
      const counts: RecordedOverdue = { notices: 0, blocks: 0 };
      for (const invoice of await listUnpaid(transaction, [organizationId], horizon(terms, now))) {
        const step = overdueStep(invoice, terms, now);
        if (step === undefined) {
          continue;
        }
        const isNew =
          step.step === "block"
            ? await insertBlock(transaction, invoice, now)
            : await insertNotice(transaction, invoice, step, now);
        if (isNew) {
          counts[step.step === "block" ? "blocks" : "notices"] += 1;
          events.push(eventOf(invoice, step, now));
        }
      }
      await recordOwnEvents(transaction, events);
      return counts;
    });
}

/** Until the end of the transaction nothing else pays, credits, notifies, blocks or unblocks there. It comes before locks of invoices. */
export async function lockOrganization(transaction: Ledger, id: RawBuilder<unknown>): Promise<void> {
  await sql`select from organizations where id = ${id} for no key update`.execute(transaction);
}

async function insertNotice(
  transaction: Ledger,
  { number }: UnpaidInvoice,
  { notice, blocksAt }: OverdueStep,
  now: Date,
): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    insert into overdue_notices (invoice_number, notice, blocks_at, recorded_at)
    values (${number}, ${notice}, ${blocksAt}, ${now}) on conflict do nothing`.execute(transaction);
  return numAffectedRows > 0n;
}

async function insertBlock(
  transaction: Ledger,
  { organizationId, number }: UnpaidInvoice,
  now: Date,
): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    insert into overdue_blocks (organization_id, invoice_number, blocked_at)
    values (${organizationId}, ${number}, ${now}) on conflict do nothing`.execute(transaction);
  return numAffectedRows > 0n;
}

const TYPES = { due: "invoice.due", overdue: "invoice.overdue", block: "organization.blocked" } as const;

/** The event of a step. Pure. */
function eventOf(
  invoice: UnpaidInvoice,
  { step, notice, blocksAt }: OverdueStep,
  now: Date,
): NotificationEvent {
  const { organizationId, number, dueAt, openCents, currency, isWaived } = invoice;
  return {
    organizationId,
    projectId: null,
    type: TYPES[step],
    key: JSON.stringify([number, step === "block" ? now.toISOString() : notice]),
    occurredAt: now,
    data: {
      invoice_id: number,
      due_at: dueAt.toISOString(),
      open_amount: String(openCents),
      currency,
      ...(step === "block" || isWaived ? {} : { blocks_at: blocksAt.toISOString() }),
    },
  };
}

/**
 * Of an unpaid invoice `i` and a block `b`: that it blocks by now, as that of the block did when it blocked. So not one that is to block later, nor one
 * whose payment was taken back, before it is notified of again.
 */
const keepsBlocked = sql`exists (
  select from overdue_notices o where o.invoice_number = i.number and o.notice like '%/' || p.reversals
  having max(o.blocks_at) <= greatest(now(), b.blocked_at) and bool_or(o.notice = 'overdue/' || p.reversals))`;

/**
 * Ends the block of an organization for overdue invoices, with its event, once none is left that blocks and is not waived. A block that an administrator
 * set stays, and there is no event then. In the transaction that pays or credits, which has locked the organization.
 */
export async function liftOverdueBlock(transaction: Ledger, organizationId: string): Promise<void> {
  const { rows } = await sql<{ invoice_number: string; blocked_at: Date; at: Date; still_blocked: boolean }>`
    delete from overdue_blocks b where b.organization_id = ${organizationId} and not exists (
      select from ${unpaid(sql`u.organization_id = ${organizationId}`)} and ${keepsBlocked} and not ${isWaived})
    returning b.invoice_number, b.blocked_at, now() as at,
      (select o.blocked from organizations o where o.id = b.organization_id) as still_blocked`.execute(
    transaction,
  );
  await recordOwnEvents(
    transaction,
    rows
      .filter(({ still_blocked: stillBlocked }) => !stillBlocked)
      .map(({ invoice_number: number, blocked_at: blockedAt, at }) => ({
        organizationId,
        projectId: null,
        type: "organization.unblocked" as const,
        key: JSON.stringify([number, blockedAt.toISOString()]),
        occurredAt: at,
        data: { invoice_id: number, blocked_at: blockedAt.toISOString() },
      })),
  );
}

/** An organization that is blocked, and why. */
export interface BlockedOrganization {
  id: string;
  /** By an administrator. */
  byAdministrator: boolean;
  /** Since when it is for overdue invoices; undefined where it is not. */
  overdueSince: Date | undefined;
  /** Numbers of the invoices that have to be paid or credited before it is unblocked. */
  invoices: string[];
}

/** Organizations that are blocked, in the order of their ids. */
export async function listBlocks(ledger: Ledger, { limit, offset }: Page): Promise<BlockedOrganization[]> {
  const { rows } = await sql<{ id: string; blocked: boolean; since: Date | null; invoices: string[] }>`
    select o.id, o.blocked, b.blocked_at as since,
      (select coalesce(json_agg(i.number order by i.number), '[]')
        from ${unpaid(sql`u.organization_id = b.organization_id`)} and ${keepsBlocked} and not ${isWaived}) as invoices
    from organizations o left join overdue_blocks b on b.organization_id = o.id
    where o.blocked or b.organization_id is not null
    order by o.id limit ${limit} offset ${offset}`.execute(ledger);
  return rows.map(({ id, blocked, since, invoices }) => ({
    ...{ id, byAdministrator: blocked, overdueSince: since ?? undefined, invoices },
  }));
}

/**
 * Waives what an organization is blocked for: its overdue invoices block it no more, now or later.
 * @returns their numbers; none where it is not blocked for overdue invoices
 */
export async function waiveOverdue(transaction: Ledger, organizationId: string): Promise<string[]> {
  const { rows } = await sql<{ invoice_number: string }>`
    insert into overdue_waivers (invoice_number)
    select i.number from ${unpaid(sql`u.organization_id = ${organizationId}`)}
      and ${isOverdue} and exists (select from overdue_blocks b where b.organization_id = i.organization_id)
    on conflict do nothing returning invoice_number`.execute(transaction);
  await liftOverdueBlock(transaction, organizationId);
  return rows.map(({ invoice_number: number }) => number).toSorted();
}

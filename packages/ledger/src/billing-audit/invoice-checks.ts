import { sql } from "kysely";
import type { Check } from "./checks.ts";

/** Audits of invoices that are one statement each: a row is a finding. */

/** How long before an invoice's time a transaction may have begun whose charges it did not see. */
const OVERLAP = sql`interval '1 hour'`;

/** Charges that invoices are of, with their amounts as invoices have them. */
const invoiced = (organizationId: string) => sql`
  select kind || '/' || project_id || '/' || key as charge_key, settle_cycle as cycle, amount, recorded_at, false as is_plan
  from charges where organization_id = ${organizationId} and amount > 0
  union all
  select key, cycle_start, case kind when 'credit' then -amount else amount end, recorded_at, true
  from plan_charges where organization_id = ${organizationId}
    and cycle_of_fact(coalesce(adjusts, key), starts_at) >= (select first_cycle from invoicing)`;

/**
 * When invoices were issued, of all that was charged before: the organization's own of the last cycle that has them, or a later one. Where it has none, when
 * the first ones of that cycle were: they are issued of one organization after the other, which may take hours.
 */
const invoicedAt = (organizationId: string) => sql`coalesce(
  (select max(issued_at) from invoices where organization_id = ${organizationId} and cycle_start >= (select max(cycle_start) from invoice_cycles)),
  (select min(issued_at) from invoices where cycle_start = (select max(cycle_start) from invoice_cycles)),
  (select max(issued_at) from invoice_cycles))`;

/** Each charge of a cycle that has its invoices is on one, with its amount. What came since is for the next one. */
export const chargesOnInvoices: Check = ({ organizationId, from, to }) => sql`
  with other as materialized (
    select c.*, i.amount as invoiced from (${invoiced(organizationId)}) c
      left join (select charge_key, amount from invoice_charges where organization_id = ${organizationId}
        and cycle_start >= ${from}::date and cycle_start < ${to}::date) i using (charge_key)
    where c.cycle >= ${from}::date and c.cycle < ${to}::date
      and c.cycle >= (select first_cycle from invoicing) and i.amount is distinct from c.amount
  ), found as materialized (
    select o.*, coalesce(invoiced, (select amount from invoice_charges i
      where i.organization_id = ${organizationId} and i.charge_key = o.charge_key)) as listed
    from other o
  )
  select case when listed is null then 'INVOICE_CHARGE_MISSING' else 'INVOICE_CHARGE_DIFFERS' end as code, charge_key as key,
    trim_scale(amount)::text as expected, trim_scale(listed)::text as found
  from found c
  where listed is distinct from amount
    and (listed is not null or c.cycle in (select cycle_start from invoice_cycles)
      and (not c.is_plan or c.recorded_at < (select ${invoicedAt(organizationId)} - ${OVERLAP})))`;

type Scope = Parameters<Check>[0];

/** Charges of invoices of some cycles, with the charges of plans that they are: of the same cycles as a rule, so that others are read one by one. */
const withPlanCharges = ({ organizationId, from, to }: Scope) => sql`
  select i.*, coalesce(own.key, other.key) as key, coalesce(own.cycle_start, other.cycle_start) as charged_in,
    coalesce(own.project_id, other.project_id) as project_id, coalesce(own.kind, other.kind) as kind,
    coalesce(own.plan, other.plan) as plan, coalesce(own.adjusts, other.adjusts) as adjusts,
    coalesce(own.starts_at, other.starts_at) as starts_at
  from (select * from invoice_charges where organization_id = ${organizationId}
      and cycle_start >= ${from}::date and cycle_start < ${to}::date) i
    left join (select * from plan_charges where organization_id = ${organizationId}
      and cycle_start >= ${from}::date and cycle_start < ${to}::date) own on own.key = i.charge_key
    left join lateral (select * from plan_charges p
      where own.key is null and p.key = i.charge_key and p.organization_id = ${organizationId} offset 0) other on true`;

/** What is on an invoice is a charge that belongs there. Charges of runs and of their storage are deleted before invoices are. */
export const invoicedCharges: Check = (scope) => {
  const { organizationId, from, to } = scope;
  return sql`
  select 'INVOICE_CHARGE_UNEXPECTED' as code, i.charge_key as key, null::text as expected,
    concat(i.cycle_start, ' line ', i.line, ', ', trim_scale(i.amount)) as found
  from (${withPlanCharges(scope)}) i
    left join (select kind || '/' || project_id || '/' || key as charge_key, settle_cycle from charges
      where organization_id = ${organizationId} and settle_cycle >= ${from}::date and settle_cycle < ${to}::date) c using (charge_key)
  where case when split_part(i.charge_key, '/', 1) in ('job_run', 'storage')
      then c.settle_cycle <> i.cycle_start or c.charge_key is null
        and (i.at - interval '1 day' > (select coalesce(max(due_before), '-infinity') from retirements)
          or exists (select from charges o where o.organization_id = ${organizationId}
            and o.kind = split_part(i.charge_key, '/', 1) and o.project_id = split_part(i.charge_key, '/', 2)
            and o.key = substr(i.charge_key, length(split_part(i.charge_key, '/', 1)) + length(split_part(i.charge_key, '/', 2)) + 3)))
      else i.key is null or i.cycle_start < i.charged_in
        or cycle_of_fact(coalesce(i.adjusts, i.key), i.starts_at) < (select first_cycle from invoicing) end`;
};

/** A line is the sum of its charges, which are of its project, kind, plan and price. */
export const lines: Check = (scope) => sql`
  with own as (
    select cycle_start, line, amount, quantity,
      case when key is not null then concat_ws('/', project_id, kind, plan) end as line_of
    from (${withPlanCharges(scope)}) i
  ), summed as (
    select cycle_start, line, sum(amount) as amount, sum(quantity) as quantity, count(*) as charges, min(line_of) as line_of,
      max(line_of) as last_of
    from own group by cycle_start, line
  )
  select 'INVOICE_LINE_DIFFERS' as code, concat(cycle_start, '/', line) as key,
    concat_ws(' ', s.charges, 'charges', s.line_of, trim_scale(s.quantity), '=', trim_scale(s.amount)) as expected,
    concat_ws(' ', l.charge_count, 'charges', concat_ws('/', l.project_id, l.kind, l.plan), trim_scale(l.quantity), 'x',
      trim_scale(l.unit_price), '=', trim_scale(l.amount)) as found
  from summed s full join (select * from invoice_lines where organization_id = ${scope.organizationId}
    and cycle_start >= ${scope.from}::date and cycle_start < ${scope.to}::date) l using (cycle_start, line)
  where (s.amount, s.quantity, s.charges) is distinct from (l.amount, l.quantity, l.charge_count::bigint)
    or l.amount <> l.quantity * l.unit_price or s.line_of <> s.last_of
    or s.line_of <> concat_ws('/', l.project_id, l.kind, l.plan)`;

/** An invoice is the sum of its lines and of what the one before left, with the sum of its taxes. */
export const totals: Check = ({ organizationId, from, to }) => sql`
  with invoice as (
    select * from invoices where organization_id = ${organizationId} and cycle_start >= ${from}::date and cycle_start < ${to}::date
  )
  select 'INVOICE_DIFFERS' as code, i.number as key,
    concat(l.lines, ' lines, ', l.charges, ' charges, ', trim_scale(l.amount), ' and ', t.cents, ' of taxes') as expected,
    concat(i.line_count, ' lines, ', i.charge_count, ' charges, ', trim_scale(i.subtotal), ', net ', i.net_cents, ' and ', i.tax_cents,
      ' of taxes, total ', i.total_cents) as found
  from invoice i
    cross join lateral (select count(*) as lines, coalesce(sum(amount), 0) as amount, coalesce(sum(charge_count), 0) as charges
      from invoice_lines l where (l.organization_id, l.cycle_start) = (i.organization_id, i.cycle_start)) l
    cross join lateral (select coalesce(sum((t ->> 'cents')::numeric), 0) as cents from jsonb_array_elements(i.taxes) t) t
  where (l.lines, l.amount, l.charges, t.cents) is distinct from (i.line_count::bigint, i.subtotal, i.charge_count::bigint, i.tax_cents::numeric)
    or i.net_cents <> greatest(0, trunc(i.carry_in + i.subtotal)) or i.carry_out <> i.carry_in + i.subtotal - i.net_cents
    or i.total_cents <> i.net_cents + i.tax_cents
  union all
  select 'INVOICE_CARRY_DIFFERS', i.number, trim_scale(coalesce(p.carry_out, s.carry_in, 0))::text, trim_scale(i.carry_in)::text
  from invoice i left join lateral (select carry_out from invoices p
      where p.organization_id = i.organization_id and p.cycle_start < i.cycle_start order by cycle_start desc limit 1) p on true
    left join settlements s on (s.organization_id, s.cycle_start) = (i.organization_id, i.cycle_start)
  where i.carry_in <> coalesce(p.carry_out, s.carry_in, 0)
  union all
  select 'INVOICE_MISSING', l.cycle_start::text, 'an invoice', count(*) || ' lines without one'
  from invoice_lines l where organization_id = ${organizationId} and cycle_start >= ${from}::date and cycle_start < ${to}::date
    and not exists (select from invoices i where (i.organization_id, i.cycle_start) = (l.organization_id, l.cycle_start))
  group by l.cycle_start`;

/** No more is paid than the total, and what was given back is a payment that was recorded before. */
export const payments: Check = ({ organizationId, from, to }) => sql`
  with invoice as (
    select * from invoices where organization_id = ${organizationId} and cycle_start >= ${from}::date and cycle_start < ${to}::date
  )
  select 'PAYMENT_DIFFERS' as code, number as key, 'at most ' || total_cents as expected, paid::text as found
  from invoice cross join lateral (
    select sum(case kind when 'payment' then amount_cents else -amount_cents end) as paid
    from invoice_payments where invoice_number = number) p
  where paid > total_cents
  union all
  select 'PAYMENT_DIFFERS', concat(r.invoice_number, '/', r.reference), coalesce(p.amount_cents::text, 'a payment'), 'reversed ' || r.amount_cents
  from invoice join invoice_payments r on r.invoice_number = number and r.kind = 'reversal'
    left join invoice_payments p on (p.invoice_number, p.reference, p.kind) = (r.invoice_number, r.reference, 'payment')
  where p.amount_cents is distinct from r.amount_cents`;

/** Numbers of each series and year are those from 1 to the last one that was given: of all organizations. */
export const numbers = sql`
  with document as (
    select 'invoice' as series, number, extract(year from issued_at at time zone 'UTC')::int as year from invoices
    union all
    select 'credit_note', number, extract(year from issued_at at time zone 'UTC')::int from credit_notes
  ), given as (
    select d.series, d.year, document_number(d.series, d.year, n) as number
    from document_numbers d cross join generate_series(1, d.last) n
  )
  select case when d.number is null then 'NUMBER_MISSING' else 'NUMBER_UNEXPECTED' end as code, number as key,
    case when d.number is null then 'a document' else 'no such number was given' end as expected, null::text as found
  from given g full join document d using (series, number)
  where d.number is null or g.number is null or d.year <> g.year
  union all
  select 'PAYMENT_DIFFERS', concat(invoice_number, '/', reference), 'an invoice', 'none' from invoice_payments p
  where not exists (select from invoices where number = p.invoice_number)
  union all
  select 'CREDIT_NOTE_DIFFERS', number, 'an invoice', 'none' from credit_notes c
  where not exists (select from invoices where number = c.invoice_number)`;

import { sql } from "kysely";
import { sealHash } from "../billing-seals.ts";
import type { Ledger } from "../connect.ts";
import { mayBeRetired } from "../retention.ts";
import { leavesOf, type SealScheme, sealScheme, tablesOf } from "../sealed-tables.ts";
import { runCheck } from "./checks.ts";
import type { BillingFinding } from "./findings.ts";

/** Audits the chain of seals, and rows by their seals: docs/billing-audit.md#seals. */

export interface SealScope {
  /** Rows of others are left out. The chain itself is of all. */
  organizationId?: string | undefined;
  /** Rows that were recorded before are left out, as they are sealed: a date. */
  from?: string | undefined;
  /** A hash of the chain that was kept elsewhere, in hexadecimal. */
  head?: string | undefined;
  /** What seals have of rows; as this release has it unless given. */
  scheme?: SealScheme | undefined;
}

export interface AuditedSeals {
  seals: number;
  /** Of the last seal. */
  head: string | undefined;
  /** Sealed rows that were compared. */
  rows: number;
  /** Hashes of an organization's rows of which some or all were deleted as they aged. */
  retired: number;
}

type Report = (finding: BillingFinding) => void;

/** Seals whose rows are read together. */
const SEALS = 48;

interface Seal {
  number: string;
  format: number;
  sealed_from: string;
  sealed_to: string;
}

export async function auditSeals(ledger: Ledger, scope: SealScope, report: Report): Promise<AuditedSeals> {
  // Hashes are of rows as text, in which times are in the session's zone.
  await sql`set local timezone = 'UTC'`.execute(ledger);
  const result: AuditedSeals = { seals: 0, head: undefined, rows: 0, retired: 0 };
  await runCheck(ledger, chain, report);
  if (scope.head !== undefined) {
    await auditHead(ledger, scope.head, report);
  }
  const { rows: last } = await sql<{ head: string; seals: number }>`
    select encode(hash, 'hex') as head, number::int as seals from billing_seals order by number desc limit 1`.execute(
    ledger,
  );
  result.head = last[0]?.head;
  result.seals = last[0]?.seals ?? 0;
  for (let after = "0"; ; ) {
    const { rows: seals } = await sql<Seal>`
      select number, format, sealed_from::text, sealed_to::text from billing_seals
      where number > ${after} and sealed_to > coalesce(${scope.from ?? null}::timestamp at time zone 'UTC', '-infinity')
      order by number limit ${SEALS}`.execute(ledger);
    const [first] = seals;
    const end = seals.at(-1);
    if (first === undefined || end === undefined) {
      return result;
    }
    for (const some of ofOneFormat(seals)) {
      await auditLeaves(ledger, { seals: some, scope, result }, report);
    }
    after = end.number;
  }
}

/** Seals that follow each other and have the same format. */
function ofOneFormat(seals: readonly Seal[]): Seal[][] {
  const parts: Seal[][] = [];
  for (const seal of seals) {
    const last = parts.at(-1);
    if (last?.[0]?.format === seal.format) {
      last.push(seal);
    } else {
      parts.push([seal]);
    }
  }
  return parts;
}

/** Each seal follows the one before, and has the hash of its leaves. A row is a finding. */
const chain = sql`
  select 'SEAL_DIFFERS' as code, s.number::text as key, 'what follows from the seal before, and its leaves' as expected,
    encode(s.hash, 'hex') as found
  from (select *, lag(number, 1, 0::bigint) over w as number_before, lag(sealed_to, 1, '-infinity') over w as to_before,
      lag(hash, 1, decode(repeat('00', 32), 'hex')) over w as hash_before
    from billing_seals window w as (order by number)) s
  where s.number <> s.number_before + 1 or s.sealed_from <> s.to_before or s.previous <> s.hash_before
    or s.hash <> ${sealHash(sql`s`)}
    or s.rows <> (select coalesce(sum(rows), 0) from billing_seal_leaves l where l.number = s.number)
  union all
  select 'SEAL_DIFFERS', number::text, 'a seal', count(*) || ' leaves of none' from billing_seal_leaves l
  where not exists (select from billing_seals s where s.number = l.number) group by number`;

async function auditHead(ledger: Ledger, head: string, report: Report): Promise<void> {
  const { rows } = await sql`select from billing_seals where hash = decode(${head}, 'hex')`.execute(ledger);
  if (rows.length === 0) {
    report({ code: "SEAL_HEAD_UNKNOWN", key: head, expected: "a seal of the chain" });
  }
}

interface Leaf {
  number: string;
  organization_id: string;
  part: string;
  expected: string | null;
  found: string | null;
  expected_rows: string | null;
  found_rows: string | null;
  retired: boolean;
  same: boolean;
}

/** Whether rows of a leaf may have been deleted as they aged: those of its day, of which the last may have some, and of a cycle that is settled and invoiced. */
const isRetired = sql`coalesce(
  nullif(split_part(l.part, '/', 1), '')::date <= (select (max(due_before) at time zone 'UTC')::date from retirements)
  and ${mayBeRetired({
    organizationId: sql`l.organization_id`,
    cycle: sql`nullif(split_part(l.part, '/', 2), '')::date`,
    settled: sql`(select max(cycle_start) from billing_cycles where settled_at is not null)`,
  })}, false)`;

async function auditLeaves(
  ledger: Ledger,
  { seals, scope, result }: { seals: readonly Seal[]; scope: SealScope; result: AuditedSeals },
  report: Report,
): Promise<void> {
  const [first] = seals;
  const bounds = [first?.sealed_from ?? "", ...seals.map(({ sealed_to }) => sealed_to)];
  const numbers = seals.map(({ number }) => number);
  const { organizationId, scheme = sealScheme } = scope;
  const format = first?.format ?? scheme.format;
  if (format > scheme.format) {
    for (const { number } of seals) {
      report({
        code: "SEAL_FORMAT_UNKNOWN",
        key: number,
        expected: `at most ${scheme.format}`,
        found: `${format}`,
      });
    }
    return;
  }
  for (const table of tablesOf(scheme, format)) {
    const { rows } = await sql<Leaf>`
      select number, organization_id, part, encode(l.hash, 'hex') as expected, encode(f.hash, 'hex') as found,
        l.rows as expected_rows, f.rows as found_rows, l.hash is not distinct from f.hash as same,
        l.rows > coalesce(f.rows, 0) and ${isRetired} as retired
      from (select * from billing_seal_leaves where number = any (${numbers}::bigint[]) and relation = ${table.name}
          and (${organizationId ?? null}::text is null or organization_id in ('', ${organizationId ?? null}::text))) l
        full join (select (${numbers}::bigint[])[bucket] as number, organization_id, part, rows, hash
          from (${leavesOf(table, { format, bounds, organizationId })}) f) f
        using (number, organization_id, part)
      order by number, organization_id, part`.execute(ledger);
    for (const leaf of rows) {
      result.rows += Number(leaf.found_rows ?? 0);
      if (leaf.same) {
        continue;
      }
      if (leaf.retired) {
        result.retired += 1;
        continue;
      }
      const of = (count: string | null, hash: string | null) =>
        hash === null ? "none" : `${count} rows, ${hash.slice(0, 16)}`;
      report({
        code: "SEAL_ROWS_DIFFER",
        organizationId: leaf.organization_id || undefined,
        key: [leaf.number, table.name, ...(leaf.part ? [leaf.part] : [])].join("/"),
        expected: of(leaf.expected_rows, leaf.expected),
        found: of(leaf.found_rows, leaf.found),
      });
    }
  }
}

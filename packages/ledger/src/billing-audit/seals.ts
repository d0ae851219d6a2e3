import { sql } from "kysely";
import type { Ledger } from "../connect.ts";
import { mayBeRetired } from "../retention.ts";
import { leavesOf, type SealedTable, type SealScheme, sealScheme, tablesOf } from "../sealed-tables.ts";
import { auditChain } from "./chain.ts";
import type { BillingFinding } from "./findings.ts";
import { auditPart } from "./parts.ts";

/** Audits the chain of seals, and rows by their seals: docs/billing-audit.md#seals. */

export interface SealScope {
  /** Rows of others are left out. The chain itself is of all. */
  organizationId?: string | undefined;
  /** Rows that were recorded before are left out, as they are sealed, and so is the chain: a date. */
  from?: string | undefined;
  /** A hash of the chain that was kept elsewhere, in hexadecimal. */
  head?: string | undefined;
  /** What seals have of rows; as this release has it unless given. */
  scheme?: SealScheme | undefined;
}

export interface AuditedSeals {
  seals: number;
  /** The number of the first seal that is compared with the one before. */
  chainFrom: number;
  /** Of the last seal. */
  head: string | undefined;
  /** All that was recorded before is sealed; undefined where there are no seals. As text, as are those that follow. */
  until: string | undefined;
  /** When the first seal was made, and the last one. */
  firstAt: string | undefined;
  lastAt: string | undefined;
  /** Whether seals are being made of what was recorded more than a day ago: after an upgrade, or while none were made. */
  isCatchingUp: boolean;
  /** Sealed rows that were compared. */
  rows: number;
  /** Hashes of an organization's rows of which some or all were deleted as they aged. */
  retired: number;
}

type Report = (finding: BillingFinding, others?: number) => void;

/** Seals whose rows are read together, and about how many rows. */
const SEALS = 48;
const ROWS = 500_000;
/** How long what was recorded may be in no seal. */
const UNSEALED = sql`interval '1 day'`;
/** How long ago the last seal was made where more are being made. */
const SEALING = sql`interval '1 hour'`;
/** Findings of one table of such seals that are described: the others are counted. */
const LISTED = 100;

interface Seal {
  number: string;
  format: number;
  sealed_from: string;
  sealed_to: string;
  rows: string;
}

/** In a transaction, whose time zone is UTC from then on. */
export async function auditSeals(ledger: Ledger, scope: SealScope, report: Report): Promise<AuditedSeals> {
  // Hashes are of rows as text, in which times are in the session's zone.
  await sql`set local timezone = 'UTC'`.execute(ledger);
  const result: AuditedSeals = { ...NONE };
  await auditPart(ledger, { key: "billing_seals" }, report, async () => {
    result.chainFrom = await auditChain(ledger, scope, report);
  });
  const { head } = scope;
  if (head !== undefined) {
    await auditPart(ledger, { key: head }, report, () => auditHead(ledger, head, report));
  }
  await auditPart(ledger, { key: "billing_seals" }, report, async () => {
    Object.assign(result, await knownSeals(ledger));
  });
  await auditPart(ledger, { key: "billing_seals" }, report, async () => {
    result.isCatchingUp = await auditUnsealed(ledger, scope, report);
  });
  for (let after = "0"; ; ) {
    let seals: Seal[] = [];
    await auditPart(ledger, { key: `billing_seals after ${after}` }, report, async () => {
      seals = await nextSeals(ledger, scope, after);
    });
    const end = seals.at(-1);
    if (end === undefined) {
      return result;
    }
    for (const some of ofOneFormat(seals)) {
      await auditRows(ledger, { seals: some, scope, result }, report);
    }
    after = end.number;
  }
}

const NONE: AuditedSeals = {
  seals: 0,
  chainFrom: 1,
  head: undefined,
  until: undefined,
  firstAt: undefined,
  lastAt: undefined,
  isCatchingUp: false,
  rows: 0,
  retired: 0,
};

async function knownSeals(ledger: Ledger): Promise<Partial<AuditedSeals>> {
  const text = (time: string) => sql`to_char(${sql.ref(time)}, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
  const { rows } = await sql<{ head: string; seals: number; until: string; last: string; first: string }>`
    select encode(hash, 'hex') as head, (select count(*)::int from billing_seals) as seals, ${text("sealed_to")} as until,
      ${text("sealed_at")} as last, (select ${text("sealed_at")} from billing_seals order by number limit 1) as first
    from billing_seals order by number desc limit 1`.execute(ledger);
  const [last] = rows;
  return {
    seals: last?.seals ?? 0,
    head: last?.head,
    until: last?.until,
    firstAt: last?.first,
    lastAt: last?.last,
  };
}

/**
 * What was recorded since the last seal, and is not new: all of it, where there are no seals. It is no finding while seals are made, a day of it after the
 * other.
 * @returns whether that is so
 */
async function auditUnsealed(
  ledger: Ledger,
  { organizationId, scheme = sealScheme }: SealScope,
  report: Report,
): Promise<boolean> {
  const { rows: last } = await sql`
    select from billing_seals where number = (select max(number) from billing_seals) and sealed_at > now() - ${SEALING}`.execute(
    ledger,
  );
  const isSealing = last.length > 0;
  let isBehind = false;
  // Lines and charges of invoices are sealed with these.
  for (const { name, recordedAt, organization } of tablesOf(scheme, scheme.format).filter(
    ({ ofInvoice }) => !ofInvoice,
  )) {
    const time = sql.ref(recordedAt);
    const isWanted =
      organizationId === undefined || organization === false
        ? sql`true`
        : sql`organization_id = ${organizationId}`;
    const { rows } = await sql<{ first: string | null }>`
      select min(${time})::text as first from ${sql.table(name)}
      where ${time} >= coalesce((select max(sealed_to) from billing_seals), '-infinity') and ${time} < now() - ${UNSEALED}
        and ${isWanted}`.execute(ledger);
    const first = rows[0]?.first;
    isBehind ||= first !== undefined && first !== null;
    if (first && !isSealing) {
      report({
        code: "SEAL_MISSING",
        organizationId: organization === false ? undefined : organizationId,
        key: name,
        expected:
          "a seal within a day: `billing sealed` in the operator's log, or why not as `billing could not be sealed`",
        found: `rows since ${first} are in none`,
      });
    }
  }
  return isSealing && isBehind;
}

/** The next ones that are wanted: one, or those that have no more rows together than are read at a time. */
async function nextSeals(ledger: Ledger, { from }: SealScope, after: string): Promise<Seal[]> {
  const { rows: seals } = await sql<Seal>`
    select number, format, sealed_from::text, sealed_to::text, rows from billing_seals
    where number > ${after} and sealed_to > coalesce(${from ?? null}::timestamp at time zone 'UTC', '-infinity')
    order by number limit ${SEALS}`.execute(ledger);
  let total = 0;
  return seals.filter(({ rows }, index) => {
    total += Number(rows);
    return index === 0 || total <= ROWS;
  });
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

async function auditHead(ledger: Ledger, head: string, report: Report): Promise<void> {
  const { rows } = await sql`select from billing_seals where hash = decode(${head}, 'hex')`.execute(ledger);
  if (rows.length === 0) {
    report({ code: "SEAL_HEAD_UNKNOWN", key: head, expected: "a seal of the chain" });
  }
}

/** Whether rows of a leaf may have been deleted as they aged: those of its day, of which the last may have some, and of a cycle that is settled and invoiced. */
const isRetired = sql`coalesce(
  nullif(split_part(l.part, '/', 1), '')::date <= (select (max(due_before) at time zone 'UTC')::date from retirements)
  and ${mayBeRetired({
    organizationId: sql`l.organization_id`,
    cycle: sql`nullif(split_part(l.part, '/', 2), '')::date`,
    settled: sql`(select max(cycle_start) from billing_cycles where settled_at is not null)`,
  })}, false)`;

interface Compared {
  seals: readonly Seal[];
  scope: SealScope;
  result: AuditedSeals;
}

/** Compares rows of seals that follow each other and have one format. */
async function auditRows(ledger: Ledger, { seals, scope, result }: Compared, report: Report): Promise<void> {
  const { scheme = sealScheme } = scope;
  const [first] = seals;
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
    const key = `${table.name} of seals ${first?.number} to ${seals.at(-1)?.number}`;
    await auditPart(ledger, { key }, report, () =>
      auditTable(ledger, { seals, table, format, scope, result }, report),
    );
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
}

async function auditTable(
  ledger: Ledger,
  { seals, table, format, scope, result }: Compared & { table: SealedTable; format: number },
  report: Report,
): Promise<void> {
  const bounds = [seals[0]?.sealed_from ?? "", ...seals.map(({ sealed_to }) => sealed_to)];
  const numbers = seals.map(({ number }) => number);
  const { organizationId } = scope;
  const { rows } = await sql<{ rows: string; retired: string; differing: string; leaves: Leaf[] | null }>`
    with leaf as materialized (
      select number, organization_id, part, l.hash as expected, f.hash as found, l.rows as expected_rows, f.rows as found_rows,
        l.hash is distinct from f.hash as differs
      from (select * from billing_seal_leaves where number = any (${numbers}::bigint[]) and relation = ${table.name}
          and (${organizationId ?? null}::text is null or organization_id in ('', ${organizationId ?? null}::text))) l
        full join (select (${numbers}::bigint[])[bucket] as number, organization_id, part, rows, hash
          from (${leavesOf(table, { format, bounds, organizationId })}) f) f
        using (number, organization_id, part)
    ), different as (
      select *, case when differs then coalesce(expected_rows > coalesce(found_rows, 0) and ${isRetired}, false) end as retired from leaf l
    )
    select coalesce(sum(found_rows), 0) as rows, count(*) filter (where retired) as retired,
      count(*) filter (where not retired) as differing,
      (select json_agg(d) from (select number::text, organization_id, part, encode(expected, 'hex') as expected,
          encode(found, 'hex') as found, expected_rows, found_rows from different where not retired
        order by different.number, organization_id, part limit ${LISTED}) d) as leaves
    from different`.execute(ledger);
  const [compared] = rows;
  const leaves = compared?.leaves ?? [];
  result.rows += Number(compared?.rows ?? 0);
  result.retired += Number(compared?.retired ?? 0);
  const others = Number(compared?.differing ?? 0) - leaves.length;
  for (const [index, leaf] of leaves.entries()) {
    report(findingOf(table, leaf), index === 0 ? others : 0);
  }
}

function findingOf({ name }: SealedTable, leaf: Leaf): BillingFinding {
  const of = (count: string | null, hash: string | null) =>
    hash === null ? "none" : `${count} rows, ${hash.slice(0, 16)}`;
  return {
    code: "SEAL_ROWS_DIFFER",
    organizationId: leaf.organization_id || undefined,
    key: [leaf.number, name, ...(leaf.part ? [leaf.part] : [])].join("/"),
    expected: of(leaf.expected_rows, leaf.expected),
    found: of(leaf.found_rows, leaf.found),
  };
}

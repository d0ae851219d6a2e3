import { type RawBuilder, sql } from "kysely";

/** Which rows are sealed, and what of them: docs/billing-audit.md#seals. */

export interface SealedTable {
  name: string;
  /** The format of seals from which on it is sealed; the first one unless given. */
  since?: number;
  /** Those of the table's first format. Their order is that of the hash. */
  columns: readonly string[];
  /** Those that later formats seal, too: by format, after the others. */
  added?: Readonly<Record<number, readonly string[]>>;
  /** When a row was recorded: it is in the seal of that time. */
  recordedAt: string;
  /** Rows of no organization are sealed together. */
  organization?: false;
  /**
   * Of rows that are deleted as they age: what their age is counted from, and the cycle that has to be settled before. They have a leaf for each day and
   * cycle.
   */
  aging?: { age: string; cycle: string };
  /** Rows that have no time of their own have that of their invoice. */
  ofInvoice?: true;
}

const tables: readonly SealedTable[] = [
  {
    name: "billable_changes",
    columns: [
      ...[
        "organization_id",
        "project_id",
        "project_uid",
        "number",
        "at",
        "deleted",
        "plan",
        "payment_mode",
        "renews",
      ],
      ...["instances", "paused", "billed_gb", "recorded_at", "late", "arrival"],
    ],
    recordedAt: "recorded_at",
  },
  {
    name: "charges",
    columns: [
      ...["organization_id", "kind", "project_id", "key", "due_at", "cycle_start", "settle_cycle", "amount"],
      "recorded_at",
    ],
    recordedAt: "recorded_at",
    aging: { age: "due_at", cycle: "settle_cycle" },
  },
  {
    name: "plan_charges",
    columns: [
      ...[
        "organization_id",
        "project_id",
        "project_uid",
        "key",
        "kind",
        "starts_at",
        "ends_at",
        "final_at",
        "cycle_start",
      ],
      ...["plan", "instance", "gb", "price", "amount", "recorded_at", "adjusts", "late_at", "quantity"],
    ],
    recordedAt: "recorded_at",
  },
  {
    name: "price_lists",
    columns: ["from_at", "plans", "gb_hour", "recorded_at", "resources"],
    recordedAt: "recorded_at",
    organization: false,
  },
  {
    name: "settlements",
    columns: [
      ...["organization_id", "cycle_start", "carry_in", "total", "charged_cents", "carry_out", "settled_at"],
    ],
    recordedAt: "settled_at",
  },
  {
    name: "invoices",
    columns: [
      ...[
        "organization_id",
        "cycle_start",
        "number",
        "organization_name",
        "issuer",
        "country",
        "currency",
        "issued_at",
      ],
      ...[
        "due_at",
        "line_count",
        "charge_count",
        "carry_in",
        "subtotal",
        "net_cents",
        "carry_out",
        "taxes",
        "tax_cents",
      ],
      "total_cents",
    ],
    recordedAt: "issued_at",
  },
  {
    name: "invoice_lines",
    columns: [
      ...[
        "organization_id",
        "cycle_start",
        "line",
        "project_id",
        "kind",
        "plan",
        "quantity",
        "unit_price",
        "amount",
      ],
      ...["charge_count", "adjusts"],
    ],
    recordedAt: "issued_at",
    ofInvoice: true,
  },
  {
    name: "invoice_charges",
    columns: ["organization_id", "charge_key", "cycle_start", "line", "at", "quantity", "amount"],
    recordedAt: "issued_at",
    ofInvoice: true,
  },
  {
    name: "invoice_payments",
    columns: ["invoice_number", "reference", "kind", "amount_cents", "paid_at", "recorded_at"],
    recordedAt: "recorded_at",
    organization: false,
  },
  {
    name: "credit_notes",
    columns: [
      ...["number", "invoice_number", "reference", "reason", "issued_at", "net_cents", "taxes", "tax_cents"],
      "total_cents",
    ],
    recordedAt: "issued_at",
    organization: false,
  },
];

/** What the seals of a format have, and of all formats before. */
export interface SealScheme {
  /** What new seals have. */
  format: number;
  tables: readonly SealedTable[];
}

/**
 * A seal has the rows as its format has them, for good: a migration that adds a column to a sealed table adds it to `added` with the next format, or a
 * table with its `since`, and the format below is that one from then on. What was sealed before has the hashes of before.
 */
export const sealScheme: SealScheme = { format: 1, tables };

/** @internal The tables that a format seals. */
export const tablesOf = ({ tables: all }: SealScheme, format: number): SealedTable[] =>
  all.filter(({ since = 1 }) => since <= format);

/** @internal The columns of a table that a format seals, in their order. */
export const columnsOf = ({ columns, added = {} }: SealedTable, format: number): string[] => [
  ...columns,
  ...Object.entries(added)
    .filter(([since]) => Number(since) <= format)
    .sort(([a], [b]) => Number(a) - Number(b))
    .flatMap(([, own]) => own),
];

/** Dates as text, whatever the session's style. */
const dateOf = (date: RawBuilder<unknown>) => sql`coalesce(to_char(${date}, 'YYYY-MM-DD'), 'none')`;

/**
 * A row for each organization with rows of a table that were recorded in a time: how many, and a hash of all of their columns of a format. It is the same in
 * whatever order they are read. Of rows that are deleted as they age, a row for each `part`, which is `DAY/CYCLE`. The session's time zone is UTC.
 * @param bounds instants that divide the time, in order: the first is in it, the last is not. By `bucket`, from 1 up
 * @param organizationId rows of others are left out, but for those of no organization
 */
export function leavesOf(
  table: SealedTable,
  {
    format,
    bounds,
    organizationId,
  }: { format: number; bounds: readonly string[]; organizationId?: string | undefined },
): RawBuilder<unknown> {
  const { name, aging, organization, ofInvoice } = table;
  const time = timeOf(table);
  const own = organization === false ? sql`''` : sql`t.organization_id`;
  const from = ofInvoice
    ? sql`invoices i join ${sql.table(name)} t using (organization_id, cycle_start)`
    : sql`${sql.table(name)} t`;
  const part = aging
    ? sql`${dateOf(sql`${sql.ref(`t.${aging.age}`)} at time zone 'UTC'`)} || '/' || ${dateOf(sql.ref(`t.${aging.cycle}`))}`
    : sql`''`;
  const values = sql.join(columnsOf(table, format).map((column) => sql.ref(`t.${column}`)));
  const [first, last] = [bounds[0], bounds.at(-1)];
  const isWanted =
    organizationId === undefined || organization === false ? sql`true` : sql`${own} = ${organizationId}`;
  return sql`
    select bucket, ${name}::text as relation, organization_id, part, count(*) as rows,
      sha256(string_agg(hash, ''::bytea order by hash)) as hash
    from (
      select width_bucket(${time}, ${bounds}::timestamptz[]) as bucket, ${own} as organization_id, ${part} as part,
        sha256(convert_to(jsonb_build_array(${values})::text, 'UTF8')) as hash
      from ${from}
      where ${time} >= ${first}::timestamptz and ${time} < ${last}::timestamptz
        and ${isWanted}
    ) sealed group by bucket, organization_id, part`;
}

const timeOf = ({ recordedAt, ofInvoice }: SealedTable) =>
  sql.ref(ofInvoice ? `i.${recordedAt}` : `t.${recordedAt}`);

import { type RawBuilder, sql } from "kysely";

/** Which rows are sealed, and what of them: docs/billing-audit.md#seals. */

interface SealedTable {
  name: string;
  /** All of them: a migration that adds one to a table decides here whether it is sealed from then on. Their order is that of the hash. */
  columns: readonly string[];
  /** When a row was recorded: it is in the seal of that time. */
  recordedAt: string;
  /** Rows of no organization are sealed together. */
  organization?: false;
  /** Of rows that are deleted as they age: what their age is counted from. */
  age?: string;
  /** Rows that have no time of their own have that of their invoice. */
  ofInvoice?: true;
}

export const sealedTables: readonly SealedTable[] = [
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
    age: "due_at",
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
      ...["plan", "instance", "gb", "price", "amount", "recorded_at", "adjusts", "late_at"],
    ],
    recordedAt: "recorded_at",
  },
  {
    name: "price_lists",
    columns: ["from_at", "plans", "gb_hour", "recorded_at"],
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

/**
 * A row for each organization with rows of a table that were recorded in a time: how many, the oldest that may be deleted, and a hash of all of their
 * columns. It is the same in whatever order they are read. The session's time zone is UTC.
 * @param bounds instants that divide the time, in order: the first is in it, the last is not. By `bucket`, from 1 up
 * @param organizationId rows of others are left out, but for those of no organization
 */
export function leavesOf(
  table: SealedTable,
  bounds: readonly string[],
  organizationId?: string,
): RawBuilder<unknown> {
  const { name, columns, recordedAt, organization, age, ofInvoice } = table;
  const time = sql.ref(ofInvoice ? `i.${recordedAt}` : `t.${recordedAt}`);
  const own = organization === false ? sql`''` : sql`t.organization_id`;
  const from = ofInvoice
    ? sql`invoices i join ${sql.table(name)} t using (organization_id, cycle_start)`
    : sql`${sql.table(name)} t`;
  const values = sql.join(columns.map((column) => sql.ref(`t.${column}`)));
  const [first, last] = [bounds[0], bounds.at(-1)];
  const isWanted =
    organizationId === undefined || organization === false ? sql`true` : sql`${own} = ${organizationId}`;
  return sql`
    select bucket, ${name}::text as relation, organization_id, count(*) as rows, min(age) as oldest,
      sha256(string_agg(hash, ''::bytea order by hash)) as hash
    from (
      select width_bucket(${time}, ${bounds}::timestamptz[]) as bucket, ${own} as organization_id,
        ${age === undefined ? sql`null::timestamptz` : sql.ref(`t.${age}`)} as age,
        sha256(convert_to(jsonb_build_array(${values})::text, 'UTF8')) as hash
      from ${from}
      where ${time} >= ${first}::timestamptz and ${time} < ${last}::timestamptz
        and ${isWanted}
    ) sealed group by bucket, organization_id`;
}

import type { BillingFindingCode } from "@slipway/ledger";

/** Errors in what `recordBilledMonths` records, which the ledger refuses, and what an audit finds of each. */
export interface PlantedError {
  what: string;
  code: BillingFindingCode;
  statements: readonly string[];
}

/** Adjustments are due where some project was metered within a day. */
const METERED_NOW =
  "insert into plan_meters (organization_id, project_id, project_uid, metered_until) values ('other', 'other', 'u-other', now())";

type Written = readonly [what: string, code: BillingFindingCode, ...statements: string[]];

/** A project whose rows errors are planted in. */
export interface PlantedIn {
  uid: string;
  /** Key of an hour of its instance 0. */
  hour: string;
  /** Key of an hour of its storage. */
  storage: string;
  /** Number of a change that adds instances, an hour or more after its first one, and before the end of charged hours. */
  adds: number;
}

/** Errors in the rows of any project that was charged by the hour. */
export const errorsIn = ({ uid, hour, storage, adds }: PlantedIn): PlantedError[] =>
  named([
    ["a lost hour", "CHARGE_MISSING", `delete from plan_charges where key = '${hour}'`],
    [
      "a double hour",
      "CHARGE_UNEXPECTED",
      `insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan, instance, price, amount, recorded_at)
       select organization_id, project_id, project_uid, key || '0', kind, starts_at, ends_at, final_at, cycle_start, plan, instance, price, amount, recorded_at
       from plan_charges where key = '${hour}'`,
    ],
    [
      "a wrong price",
      "CHARGE_DIFFERS",
      `update plan_charges set price = price + 1, amount = amount + 1 where key = '${hour}'`,
    ],
    ["a wrong plan", "CHARGE_DIFFERS", `update plan_charges set plan = 'business' where key = '${hour}'`],
    [
      "a wrong quantity",
      "CHARGE_DIFFERS",
      `update plan_charges set gb = gb + 1, amount = (gb + 1) * price where key = '${storage}'`,
    ],
    [
      "a moved boundary",
      "CHARGE_DIFFERS",
      `update plan_charges set starts_at = starts_at + interval '1 microsecond' where key = '${hour}'`,
    ],
    [
      "a charge of another project",
      "CHARGE_UNEXPECTED",
      `update plan_charges set project_id = 'other' where key = '${hour}'`,
    ],
    [
      "a removed change",
      "CHANGE_MISSING",
      `delete from billable_changes where project_uid = '${uid}' and number = ${adds}`,
    ],
    [
      "an edited change",
      "CHARGE_UNEXPECTED",
      `update billable_changes set instances = instances - 1 where project_uid = '${uid}' and number = ${adds}`,
    ],
    [
      "a moved change",
      "CHARGE_MISSING",
      `update billable_changes set at = at - interval '1 hour' where project_uid = '${uid}' and number = ${adds}`,
    ],
    [
      "a change of another project",
      "CHANGE_DIFFERS",
      `update billable_changes set project_id = 'other' where project_uid = '${uid}' and number = ${adds}`,
    ],
    [
      "a history that is not charged",
      "CHANGE_DIFFERS",
      `delete from plan_meters where project_uid = '${uid}'`,
    ],
    [
      "a sum of a project",
      "SUM_DIFFERS",
      `update usage_by_project set amount = amount + 0.1 where project_id = (select min(project_id) from plan_meters where project_uid = '${uid}') and kind = 'instance_hour'`,
    ],
  ]);

/** Errors in sealed rows, of which nothing else is wrong. */
export const sealedErrorsIn = ({ uid, hour, adds }: PlantedIn): PlantedError[] =>
  named([
    [
      "an edited row",
      "SEAL_ROWS_DIFFER",
      `update plan_charges set recorded_at = recorded_at + interval '1 microsecond' where key = '${hour}'`,
    ],
    [
      "an edited time of a change",
      "SEAL_ROWS_DIFFER",
      `update billable_changes set recorded_at = recorded_at + interval '1 microsecond' where project_uid = '${uid}' and number = ${adds}`,
    ],
    [
      "a removed row",
      "SEAL_ROWS_DIFFER",
      "delete from price_lists where from_at = (select max(from_at) from price_lists)",
    ],
  ]);

/** `u-shop` has hours from 28 January 10:30 on: hour 5 has one instance, hour 20 three. */
const errors: readonly Written[] = [
  [
    "a charge in another month",
    "CHARGE_MISSING",
    "update plan_charges set starts_at = starts_at + interval '1 month', ends_at = ends_at + interval '1 month', cycle_start = '2026-02-01' where key = 'u-shop/instance_hour/5/0'",
  ],
  [
    "a term that ends later",
    "CHARGE_DIFFERS",
    "update plan_charges set ends_at = ends_at + interval '1 day' where key like 'u-blog/term/%'",
  ],
  [
    "a credit of more",
    "CHARGE_DIFFERS",
    "update plan_charges set amount = amount + 1 where kind = 'credit' and project_id = 'api' and amount < price - 1",
  ],
  [
    "a term without its credit",
    "CHARGE_MISSING",
    "delete from plan_charges where kind = 'credit' and project_id = 'api'",
  ],
  [
    "a charge of another organization",
    "CHARGE_UNEXPECTED",
    "update plan_charges set organization_id = 'beta' where key = 'u-shop/instance_hour/5/0'",
  ],
  [
    "a charge of another project that there is, with its sums",
    "CHARGE_UNEXPECTED",
    "update plan_charges set project_id = 'api' where key = 'u-shop/instance_hour/5/0'",
    "update usage_by_project set amount = amount - 3, charges = charges - 1 where project_id = 'shop' and kind = 'instance_hour' and cycle_start = '2026-01-01'",
    "insert into usage_by_project values ('acme', '2026-01-01', 'api', 'instance_hour', 3, 1)",
  ],
  [
    "a lost adjustment",
    "CHARGE_MISSING",
    "delete from plan_charges where adjusts = (select min(adjusts) from plan_charges)",
  ],
  [
    "a wrong adjustment",
    "CHARGE_NET_DIFFERS",
    "update plan_charges set amount = amount / 2 where adjusts = (select min(adjusts) from plan_charges)",
  ],
  [
    "an adjustment of another fact",
    "CHARGE_UNEXPECTED",
    "update plan_charges set adjusts = 'u-late/storage_hour/9999' where adjusts = (select min(adjusts) from plan_charges)",
  ],
  [
    "charges up to an earlier instant",
    "CHARGE_UNEXPECTED",
    "update plan_meters set metered_until = metered_until - interval '20 days' where project_uid = 'u-site'",
  ],
  [
    "changes that are not in order",
    "HISTORY_INVALID",
    "update billable_changes set at = at + interval '30 days' where project_uid = 'u-shop' and number = 2",
  ],
  [
    "a project that is not metered any more",
    "METERING_ENDED",
    "update plan_meters set ended = true where project_uid = 'u-blog'",
  ],
  [
    "a project that is not metered up to its end",
    "METERING_ENDED",
    "update plan_meters set metered_until = '2026-02-11T01:00Z' where project_uid = 'u-site'",
  ],
  ["other prices", "CHARGE_DIFFERS", "update price_lists set gb_hour = '0.3'"],
  [
    "a late change without its adjustment",
    "ADJUSTMENT_OVERDUE",
    METERED_NOW,
    "update plan_meters set late_from = metered_until, late_since = now() - interval '25 hours', late_arrival = arrivals where project_uid = 'u-late'",
  ],
  [
    "an adjustment that nothing made necessary",
    "ADJUSTMENT_OVERDUE",
    METERED_NOW,
    "update plan_meters set late_from = metered_until, late_arrival = arrivals where project_uid = 'u-shop'",
  ],
  [
    "a run without its charge",
    "RUN_CHARGE_MISSING",
    "delete from charges where kind = 'job_run' and due_at = '2026-01-15T03:00Z'",
  ],
  [
    "a charge without its run",
    "RUN_CHARGE_UNEXPECTED",
    "delete from job_runs where scheduled_minute = '2026-01-15T03:00Z'",
  ],
  [
    "a run charged more",
    "RUN_CHARGE_DIFFERS",
    "update charges set amount = amount + 1 where kind = 'job_run' and due_at = '2026-01-15T03:00Z'",
  ],
  [
    "a charge that is left out of its settlement",
    "RUN_CHARGE_DIFFERS",
    "update charges set settle_cycle = '2027-01-01' where kind = 'job_run' and due_at = '2026-01-15T03:00Z'",
  ],
  [
    "an hour of storage without its charge",
    "STORAGE_CHARGE_MISSING",
    "delete from charges where kind = 'storage' and due_at = '2026-01-31T05:00Z'",
  ],
  [
    "storage that is charged twice",
    "STORAGE_CHARGE_UNEXPECTED",
    "delete from storage_hours where hour_started_at = '2026-01-31T05:00Z'",
  ],
  [
    "storage that is charged more",
    "STORAGE_CHARGE_DIFFERS",
    "update charges set amount = 1 where kind = 'storage' and due_at = '2026-01-31T05:00Z'",
  ],
  [
    "a moved hour of storage",
    "STORAGE_CHARGE_DIFFERS",
    "update storage_hours set hour_started_at = hour_started_at + interval '1 minute' where hour_started_at = '2026-01-31T05:00Z'",
    "update charges set due_at = due_at + interval '1 minute' where kind = 'storage' and due_at = '2026-01-31T05:00Z'",
  ],
  [
    "builds that cost nothing by other prices",
    "CHARGE_DIFFERS",
    `update price_lists set resources = '{"buildMinute": "0"}'`,
  ],
  [
    "a build at the price of its end",
    "CHARGE_DIFFERS",
    "update plan_charges set price = 0.07, amount = quantity * 0.07 where key = 'u-site/build_minute/b4'",
  ],
  [
    "a build of more minutes",
    "CHARGE_DIFFERS",
    "update plan_charges set quantity = quantity * 100, amount = amount * 100 where key = 'u-shop/build_minute/b1'",
  ],
  [
    "more minutes of a build that the history has forgotten",
    "CHARGE_DIFFERS",
    "delete from builds",
    "alter table plan_charges drop constraint amount_of_price",
    "update plan_charges set amount = amount * 100 where key = 'u-shop/build_minute/b1'",
  ],
  [
    "a build in another month",
    "CHARGE_DIFFERS",
    "update plan_charges set starts_at = starts_at - interval '1 month', cycle_start = '2025-12-01' where key = 'u-nightly/build_minute/b3'",
  ],
  [
    "a build of another project",
    "CHARGE_DIFFERS",
    "update plan_charges set project_id = 'other' where key = 'u-nightly/build_minute/b3'",
  ],
  [
    "a build of another project that has a history",
    "CHARGE_UNEXPECTED",
    "delete from builds",
    "update plan_charges set project_id = 'other' where key = 'u-shop/build_minute/b1'",
  ],
  [
    "a build without its charge",
    "BUILD_CHARGE_MISSING",
    "delete from plan_charges where key = 'u-nightly/build_minute/b3'",
  ],
  [
    "a charge of a build that the platform failed",
    "CHARGE_UNEXPECTED",
    "update builds set error_code = 'BUILD_ENGINE_FAILED' where id = 'b1'",
  ],
  [
    "a sum of a day",
    "SUM_DIFFERS",
    "delete from usage_by_day where organization_id = 'gamma' and day = '2026-01-20'",
  ],
  [
    "a settlement of less",
    "SETTLEMENT_DIFFERS",
    "update settlements set total = total - 1, charged_cents = charged_cents - 1 where organization_id = 'gamma'",
  ],
  [
    "another carry",
    "SETTLEMENT_DIFFERS",
    `update settlements set carry_in = 0.99, total = total + 0.99, charged_cents = trunc(total + 0.99), carry_out = total + 0.99 - trunc(total + 0.99)
     where organization_id = 'gamma' and cycle_start = '2026-01-01'`,
  ],
  [
    "a lost settlement",
    "SETTLEMENT_DIFFERS",
    "delete from settlements where organization_id = 'gamma' and cycle_start = '2026-02-01'",
  ],
  [
    "a charge on no invoice",
    "INVOICE_CHARGE_MISSING",
    "delete from invoice_charges where charge_key = 'u-shop/instance_hour/5/0'",
  ],
  [
    "a charge of a run on no invoice",
    "INVOICE_CHARGE_MISSING",
    "delete from invoice_charges where charge_key like 'job_run/%' and organization_id = 'gamma' and cycle_start = '2026-01-01'",
  ],
  [
    "a charge that is nothing's",
    "INVOICE_CHARGE_UNEXPECTED",
    "update invoice_charges set charge_key = charge_key || '0' where charge_key = 'u-shop/instance_hour/5/0'",
  ],
  [
    "an invoiced amount",
    "INVOICE_CHARGE_DIFFERS",
    "update invoice_charges set amount = amount + 1 where charge_key = 'u-shop/instance_hour/5/0'",
  ],
  [
    "a line of more",
    "INVOICE_LINE_DIFFERS",
    "update invoice_lines set quantity = quantity + 1, amount = (quantity + 1) * unit_price where organization_id = 'gamma'",
  ],
  [
    "a line of another project",
    "INVOICE_LINE_DIFFERS",
    "update invoice_lines set project_id = 'other' where project_id = 'shop'",
  ],
  [
    "a lost line",
    "INVOICE_LINE_DIFFERS",
    "delete from invoice_lines where organization_id = 'gamma' and line = 1",
  ],
  [
    "an invoice of more",
    "INVOICE_DIFFERS",
    "update invoices set subtotal = subtotal + 1, net_cents = net_cents + 1, total_cents = total_cents + 1 where organization_id = 'gamma'",
  ],
  [
    "a carry of an invoice",
    "INVOICE_CARRY_DIFFERS",
    "update invoices set carry_in = carry_in - 0.001, carry_out = carry_out - 0.001 where organization_id = 'gamma' and cycle_start = '2026-02-01'",
  ],
  [
    "a tax of more",
    "INVOICE_TAX_DIFFERS",
    `update invoices set taxes = jsonb_set(taxes, '{0,cents}', to_jsonb((tax_cents + 1)::text)), tax_cents = tax_cents + 1, total_cents = total_cents + 1 where organization_id = 'gamma'`,
  ],
  [
    "a lost invoice",
    "NUMBER_MISSING",
    "delete from invoices where organization_id = 'gamma' and cycle_start = '2026-02-01'",
  ],
  [
    "an invoice of no number",
    "NUMBER_UNEXPECTED",
    "update invoices set number = '2019-000001' where organization_id = 'gamma' and cycle_start = '2026-02-01'",
  ],
  [
    "a payment of too much",
    "PAYMENT_DIFFERS",
    "update invoice_payments set amount_cents = 99999999 where reference = 'bank-1'",
  ],
  [
    "a reversal of more",
    "PAYMENT_DIFFERS",
    "update invoice_payments set amount_cents = amount_cents + 1 where kind = 'reversal'",
  ],
  [
    "a reversal of nothing",
    "PAYMENT_DIFFERS",
    "delete from invoice_payments where reference = 'bank-2' and kind = 'payment'",
  ],
  [
    "a credit note of more",
    "CREDIT_NOTE_DIFFERS",
    "update credit_notes set net_cents = 99999999, total_cents = 99999999 + tax_cents",
  ],
  [
    "a credit note with other taxes",
    "CREDIT_NOTE_DIFFERS",
    "update credit_notes set tax_cents = tax_cents + 1, total_cents = total_cents + 1",
  ],
  ["a retention that is ahead", "RETIREMENT_AHEAD", "insert into retirements (due_before) values (now())"],
];

function named(written: readonly Written[]): PlantedError[] {
  return written.map(([what, code, ...statements]) => ({ what, code, statements }));
}

export const plantedErrors: readonly PlantedError[] = [
  ...errorsIn({ uid: "u-shop", hour: "u-shop/instance_hour/5/0", storage: "u-shop/storage_hour/5", adds: 2 }),
  ...named(errors),
];

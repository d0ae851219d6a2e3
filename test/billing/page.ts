/** The examples of docs/billing.md, as they are written there. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { BillableHistory, PlanPaymentMode, PriceList, TaxRate } from "@slipway/crds";
import { parse } from "yaml";
import { root } from "../../hack/lib/paths.ts";

interface WrittenPrices {
  from: string;
  gb_hour: string;
  resources?: { build_minute?: string };
  plans: Record<string, { hourly: string; monthly: string; yearly: string; refund?: "none" | "prorated" }>;
}

interface WrittenChange {
  at: string;
  deleted?: true;
  plan?: string;
  mode?: PlanPaymentMode;
  instances?: number;
  paused?: boolean;
  gb?: number;
  renew?: boolean;
}

interface WrittenCharge {
  kind: string;
  from: string;
  to?: string;
  plan?: string;
  instance?: number;
  gb?: number;
  amount: string;
}

export interface Example {
  example: string;
  history: WrittenChange[];
  charges: WrittenCharge[];
}

const page = readFileSync(join(root, "docs/billing.md"), "utf8");
/** The blocks of a language, parsed. */
export const blocks = (language: string): unknown[] =>
  [...page.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)]
    .filter(([, info]) => info === language)
    .map(([, , text = ""]) => parse(text));

/** Instants are written as ISO 8601. */
export const instant = (text: string): number => Date.parse(text);

export const examples = blocks("yaml") as Example[];

interface WrittenPod {
  created: string;
  began: string;
  ended?: string;
  /** With its node. */
  lost?: string;
}

/** With the pods of its attempts, or with when the containers of the last one began and ended. */
export type WrittenBuild = { id: string; ended: string; code?: string } & (
  | { began: string; pods?: never }
  | { pods: WrittenPod[] }
);

export interface BuildExample {
  example: string;
  builds: WrittenBuild[];
  charges: { kind: string; build: string; from: string; quantity: string; amount: string }[];
}

export const buildExamples = blocks("yaml builds") as BuildExample[];

export interface WrittenInvoiceCharge {
  kind: "instance_hour" | "storage_hour" | "term" | "credit";
  plan?: string;
  gb?: number;
  /** In which the term begins, or that of the credit; the cycle unless written. */
  month?: string;
  price: string;
  /** The price times the GB unless written. */
  amount?: string;
}

export interface InvoiceExample {
  example: string;
  taxes?: TaxRate[];
  /** From before the first cycle with invoices. */
  before?: WrittenInvoiceCharge[];
  cycles: {
    /** A month. */
    cycle: string;
    charges: WrittenInvoiceCharge[];
    /** Recorded after the invoice. */
    late?: WrittenInvoiceCharge[];
    invoice: {
      lines: string[];
      carried_in: string;
      net: number;
      taxes?: number[];
      total?: number;
      carried_out: string;
    };
  }[];
}

export const invoiceExamples = blocks("yaml invoices") as InvoiceExample[];

/** The prices of all examples. */
export const prices: PriceList[] = (blocks("yaml prices") as WrittenPrices[][])
  .flat()
  .map(({ from, gb_hour, resources, plans }) => ({
    from: instant(from),
    gbHour: gb_hour,
    ...(resources?.build_minute === undefined ? {} : { resources: { buildMinute: resources.build_minute } }),
    plans: Object.fromEntries(
      Object.entries(plans).map(([plan, each]) => [plan, { ...each, refund: each.refund ?? "none" }]),
    ),
  }));

/** The history of an example, with what it leaves out. */
export function historyOf({ history }: Example, projectUid: string): BillableHistory {
  const deleted = history.find((each) => each.deleted);
  const changes = history
    .filter((each) => !each.deleted)
    .map(({ at, plan = "", mode = "hourly", instances = 0, paused = false, gb = 0, renew = true }) => ({
      at: instant(at),
      plan,
      paymentMode: mode,
      instances,
      paused,
      billedGb: gb,
      renews: renew,
    }));
  return { projectUid, changes, ...(deleted === undefined ? {} : { deletedAt: instant(deleted.at) }) };
}

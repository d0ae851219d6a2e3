/** What an audit of billing finds: docs/billing-audit.md. */

export const billingFindingCodes = [
  "CHANGE_MISSING",
  "CHANGE_DIFFERS",
  "HISTORY_INVALID",
  "METERING_ENDED",
  "CHARGE_MISSING",
  "CHARGE_UNEXPECTED",
  "CHARGE_DIFFERS",
  "CHARGE_NET_DIFFERS",
  "ADJUSTMENT_OVERDUE",
  "RUN_CHARGE_MISSING",
  "RUN_CHARGE_UNEXPECTED",
  "RUN_CHARGE_DIFFERS",
  "STORAGE_CHARGE_MISSING",
  "STORAGE_CHARGE_UNEXPECTED",
  "STORAGE_CHARGE_DIFFERS",
  "BUILD_CHARGE_MISSING",
  "SUM_DIFFERS",
  "SETTLEMENT_DIFFERS",
  "INVOICE_MISSING",
  "INVOICE_CHARGE_MISSING",
  "INVOICE_CHARGE_UNEXPECTED",
  "INVOICE_CHARGE_DIFFERS",
  "INVOICE_LINE_DIFFERS",
  "INVOICE_DIFFERS",
  "INVOICE_CARRY_DIFFERS",
  "INVOICE_TAX_DIFFERS",
  "CREDIT_NOTE_DIFFERS",
  "PAYMENT_DIFFERS",
  "NUMBER_MISSING",
  "NUMBER_UNEXPECTED",
  "RETIREMENT_AHEAD",
  "SEAL_DIFFERS",
  "SEAL_MISSING",
  "SEAL_ROWS_DIFFER",
  "SEAL_HEAD_UNKNOWN",
  "SEAL_FORMAT_UNKNOWN",
  "DATE_OUT_OF_RANGE",
  "AUDIT_INCOMPLETE",
  "OBJECT_DIFFERS",
  "OBJECT_MISSING",
] as const;
export type BillingFindingCode = (typeof billingFindingCodes)[number];

/** One thing that is not as it should be. */
export interface BillingFinding {
  code: BillingFindingCode;
  /** Undefined where it is of no one organization. */
  organizationId?: string | undefined;
  /** Of the fact: of a charge, a project, a cycle, an invoice or a seal. */
  key: string;
  expected?: string | undefined;
  found?: string | undefined;
}

/** Findings of each code that are kept; the others are counted. */
const KEPT = 100;

/** Collects findings, of which a bounded number is kept. */
export class BillingFindings {
  readonly kept: BillingFinding[] = [];
  readonly counts = new Map<BillingFindingCode, number>();
  readonly #kept = new Map<BillingFindingCode, number>();

  /** @param others how many more of its code there are beside it, which are not described */
  readonly report = (finding: BillingFinding, others = 0): void => {
    const { code } = finding;
    this.counts.set(code, (this.counts.get(code) ?? 0) + 1 + others);
    const kept = this.#kept.get(code) ?? 0;
    if (kept < KEPT) {
      this.#kept.set(code, kept + 1);
      this.kept.push(finding);
    }
  };

  get total(): number {
    return this.counts.values().reduce((sum, count) => sum + count, 0);
  }
}

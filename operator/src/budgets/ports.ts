/** What budgets need of the ledger. */

import {
  type BudgetPage,
  type Ledger,
  listBudgets,
  listExhaustedBudgets,
  listUnrecordedBudgets,
  recordBudgetCrossings,
} from "@slipway/ledger";

/** Each call throws while the ledger is unavailable. */
export interface BudgetLedger {
  /** Organizations of a page of budgets, or of those with a hard cap alone; fewer than its limit on the last one. */
  list(page: BudgetPage, options?: { hardCap?: boolean }): Promise<string[]>;
  /** Of some organizations, those whose budget has reached what is not recorded. */
  unrecorded(now: Date, organizationIds: readonly string[]): Promise<string[]>;
  /** Records what an organization's budget has reached, each once and with its event. @returns how many */
  record(now: Date, organizationId: string): Promise<number>;
  /** Of some organizations, those whose hard cap is reached. */
  exhausted(now: Date, organizationIds: readonly string[]): Promise<string[]>;
}

/** The real one. */
export const budgetLedger = (ledger: Ledger): BudgetLedger => ({
  list: (page, options) => listBudgets(ledger, page, options),
  unrecorded: (now, organizationIds) => listUnrecordedBudgets(ledger, now, organizationIds),
  record: (now, organizationId) => recordBudgetCrossings(ledger, now, organizationId),
  exhausted: (now, organizationIds) => listExhaustedBudgets(ledger, now, organizationIds),
});

/** What budgets need of the ledger. */

import { type BudgetPage, type Ledger, listExhaustedBudgets, recordBudgetCrossings } from "@slipway/ledger";
import { type Clock, sleep } from "@slipway/process";

/** Each call throws while the ledger is unavailable. */
export interface BudgetLedger {
  /** Records what a page of budgets has reached, each once and with its event. */
  recordCrossings(now: Date, page: BudgetPage): Promise<{ recorded: number; next: string | undefined }>;
  /** Organizations of a page of budgets whose hard cap is reached. */
  exhausted(now: Date, page: BudgetPage): Promise<{ organizationIds: string[]; next: string | undefined }>;
}

/** The real one. */
export const budgetLedger = (ledger: Ledger): BudgetLedger => ({
  recordCrossings: (now, page) => recordBudgetCrossings(ledger, now, page),
  exhausted: (now, page) => listExhaustedBudgets(ledger, now, page),
});

/** Budgets of one query. Each reads a row for each day and kind of charge of the cycle. */
const PAGE_SIZE = 500;
/** Between two queries, in milliseconds: 25,000 budgets are compared within a minute. */
const PACE_MS = 1_000;

/** Reads one page after the other until there is none, or the signal aborts. @throws what `read` throws */
export async function eachPage(
  read: (page: BudgetPage) => Promise<{ next: string | undefined }>,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  let after: string | undefined = "";
  while (after !== undefined && !signal.aborted) {
    const { next }: { next: string | undefined } = await read({ after, limit: PAGE_SIZE });
    after = next;
    if (after !== undefined) {
      await sleep(clock, PACE_MS, signal);
    }
  }
}

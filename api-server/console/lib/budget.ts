import { centsOf, hasReached, percentOf, reaisOf } from "./decimal.ts";
import { brl } from "./format.ts";
import type { Budget } from "./shapes.ts";

/** An organization's budget: what a form says of it, what is sent, and how much of it is spent. Pure. */

/** What the form has. */
export interface BudgetForm {
  /** In reais. */
  amount: string;
  /** Percents with spaces or commas between. */
  notices: string;
  isCapped: boolean;
}

/** What the API sets where nothing else is given. */
const FIRST: BudgetForm = { amount: "", notices: "50, 80, 100", isCapped: false };

/** The form of a budget, or of the first one. */
export function budgetForm(budget: Budget | undefined): BudgetForm {
  return budget === undefined
    ? FIRST
    : { amount: reaisOf(budget.amount), notices: budget.notices.join(", "), isCapped: budget.hard_cap };
}

/**
 * What the form changes, with what others have changed meanwhile otherwise.
 * @param made the form as it was made
 * @param current the form of the budget as it is now
 */
function merged(made: BudgetForm, now: BudgetForm, current: BudgetForm): BudgetForm {
  const changed = Object.entries(now).filter(([field, value]) => made[field as keyof BudgetForm] !== value);
  return { ...current, ...Object.fromEntries(changed) };
}

/** The body that sets what {@link merged} has; undefined when that changes nothing. */
export function budgetBody(made: BudgetForm, now: BudgetForm, current: BudgetForm): object | undefined {
  const before = body(current);
  const after = body(merged(made, now, current));
  return JSON.stringify(after) === JSON.stringify(before) ? undefined : after;
}

function body({ amount, notices, isCapped }: BudgetForm) {
  const percents = notices.split(/[\s,]+/).filter((one) => one !== "");
  // What is no amount is refused by the API, as what is out of its bounds.
  return { amount: centsOf(amount.trim()) ?? amount, notices: percents.map(Number), hard_cap: isCapped };
}

/** Whether a cap would pause everything over an amount, or by a cap, that the form does not have: its reader was not warned of that. */
function pausesUnseen(form: BudgetForm, now: BudgetForm, spent: string): boolean {
  const [sent, seen] = [body(form), body(now)];
  return (sent.amount !== seen.amount || sent.hard_cap !== seen.hard_cap) && pausesNow(form, spent);
}

/** How a form is saved. */
export interface BudgetRequests {
  /** Undefined where there is no budget. */
  load: () => Promise<Budget | undefined>;
  send: (body: object) => Promise<void>;
}

/** What became of a form. */
export interface SavedBudget {
  said: string;
  /** Whether the budget is another one than the form was made from: it is made again. */
  isOver: boolean;
}

/**
 * Sends what a form changes of the budget as it is now, unless that would do what its reader could not see.
 * @param of what the form was made from
 */
export async function saveBudget(
  of: Budget | undefined,
  now: BudgetForm,
  { load, send }: BudgetRequests,
): Promise<SavedBudget> {
  const current = await load();
  const [made, existing] = [budgetForm(of), budgetForm(current)];
  if ((of === undefined) !== (current === undefined)) {
    return unsaved(of === undefined ? "A budget was set" : "The budget was removed");
  }
  const changed = budgetBody(made, now, existing);
  if (changed === undefined) {
    return { said: "Nothing is different.", isOver: false };
  }
  if (current !== undefined && pausesUnseen(merged(made, now, existing), now, current.spent)) {
    return unsaved("The budget was changed");
  }
  await send(changed);
  return { said: "Saved.", isOver: true };
}

const unsaved = (what: string): SavedBudget => ({
  said: `${what} meanwhile: nothing is saved.`,
  isOver: true,
});

/** What amount a text means: `1.500` is R$1.50, which its writer may have meant otherwise. Nothing where it is none. */
export function meantAmount(typed: string): string {
  const cents = centsOf(typed.trim());
  return cents === undefined ? "" : `= ${brl(cents)}`;
}

/** Whether a hard cap of this form would pause everything as soon as it is saved. */
export const pausesNow = ({ amount, isCapped }: BudgetForm, spent: string): boolean =>
  isCapped && hasReached(spent, centsOf(amount.trim()) ?? "");

/**
 * What is said of the form's hard cap.
 * @param spent by now; undefined where that is not known
 */
export function capWarning(form: BudgetForm, spent: string | undefined): string {
  if (spent === undefined) {
    return form.isCapped
      ? "It is not known how much is spent: all projects may be paused within a minute after it is saved."
      : "";
  }
  return pausesNow(form, spent)
    ? "So much is spent already: all projects are paused within a minute after it is saved."
    : "";
}

/** How much of a budget is spent, in percent, and whether that is all of it. */
export const spending = ({ spent, amount }: Pick<Budget, "spent" | "amount">) => ({
  percent: percentOf(spent, amount),
  isReached: hasReached(spent, amount),
});

/** What is said of a refusal, by its code: the API's words name cents. */
export const BUDGET_REFUSALS: Readonly<Record<string, string>> = {
  VALIDATION_FAILED:
    "A budget is more than R$0 and less than R$1,000,000,000, with up to 11 decimals; its notices are up to ten different whole numbers from 1 to 1,000",
  BUDGET_NOT_FOUND: "There is no budget any more",
  PERMISSION_DENIED: "This key may not change the budget",
};

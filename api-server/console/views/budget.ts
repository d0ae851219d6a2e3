import { action, changeForm, type Outcome, outcome } from "../lib/actions.ts";
import { ApiFailure } from "../lib/api.ts";
import {
  BUDGET_REFUSALS,
  type BudgetForm,
  budgetForm,
  capWarning,
  meantAmount,
  saveBudget,
  spending,
} from "../lib/budget.ts";
import { type Child, h, replace } from "../lib/dom.ts";
import { brl } from "../lib/format.ts";
import { facts, fullMoment } from "../lib/parts.ts";
import type { Budget } from "../lib/shapes.ts";
import { type Context, refreshed } from "../lib/view.ts";

const POLL_INTERVAL_MS = 30_000;
const PATH = "/v1/organization/budget";

/**
 * What a billing cycle may cost, how much of that is spent, and a form that sets, changes and removes it.
 * @param onCharged calls back with what the cycle has cost so far, which is known also where there is no budget
 */
export function budget(
  { api, signal }: Context,
  onCharged: (charged: (amount: string) => void) => void,
): HTMLElement {
  const place = h("div", {});
  const form = h("div", {});
  const to = outcome(BUDGET_REFUSALS);
  /** What the form was made from; null is of no budget. */
  let made: string | null | undefined;
  let latest: Budget | undefined;
  let charged: string | undefined;
  /** Of the form that there is. */
  let warn = () => {};
  const load = () => readBudget({ api, signal });
  const send = async (body: object) => {
    await api.change("PUT", PATH, body, signal);
  };
  const renewForm = (found: Budget | undefined) => {
    latest = found;
    const now = found === undefined ? null : JSON.stringify(budgetForm(found));
    // While it is closed: what is being typed is not replaced by a refresh.
    if (form.querySelector("details")?.open !== true && made !== now) {
      made = now;
      const spent = () => latest?.spent ?? charged;
      const change = budgetChange(found, { spent, save, remove, outcome: to, signal });
      warn = change.warn;
      change.element.addEventListener("toggle", () => {
        // What has come while it was open.
        if (!change.element.open) {
          renewForm(latest);
        }
      });
      replace(form, change.element);
    }
    warn();
  };
  onCharged((amount) => {
    charged = amount;
    warn();
  });
  const renewed = async () => {
    form.replaceChildren();
    made = undefined;
    await reload();
    // It may have been read between the change and its answer, and is not shown again then.
    renewForm(latest);
    // What had the focus is gone: unless it is elsewhere by now, keyboard navigation continues here.
    if (document.activeElement === document.body) {
      form.querySelector<HTMLElement>("summary")?.focus({ preventScroll: true });
    }
  };
  const save = async (of: Budget | undefined, now: BudgetForm) => {
    const { said, isOver } = await saveBudget(of, now, { load, send });
    if (isOver) {
      await renewed();
    }
    return said;
  };
  const remove = async () => {
    try {
      await api.change("DELETE", PATH, undefined, signal);
    } catch (error) {
      if (isNoBudget(error)) {
        await renewed();
      }
      throw error;
    }
    await renewed();
    return "Removed.";
  };
  const reload = refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      // The value of none is one, too.
      load: async () => ({ budget: await load() }),
      show: ({ budget: found }) => {
        renewForm(found);
        return found === undefined ? h("p", {}, "There is no budget: nothing is compared.") : describe(found);
      },
    },
    { signal },
  );
  return h(
    "section",
    { class: "card stack", "aria-labelledby": "budget" },
    h("h2", { id: "budget" }, "Budget"),
    place,
    to.element,
    form,
  );
}

async function readBudget({ api, signal }: Context): Promise<Budget | undefined> {
  try {
    return (await api.get<Budget>(PATH, {}, signal)).data;
  } catch (error) {
    if (isNoBudget(error)) {
      return undefined;
    }
    throw error;
  }
}

const isNoBudget = (error: unknown): boolean =>
  error instanceof ApiFailure && error.code === "BUDGET_NOT_FOUND";

function describe(one: Budget): HTMLElement {
  const { percent, isReached } = spending(one);
  const said = `${brl(one.spent)} of ${brl(one.amount)} spent, ${percent} %`;
  const bar = h("progress", { max: 100, value: percent, "aria-label": "Spent", "aria-valuetext": said });
  const reached = one.reached.flatMap(({ threshold, at }) => [`${threshold} % on `, fullMoment(at), "; "]);
  return h(
    "div",
    { class: isReached ? "budget reached" : "budget" },
    h("p", {}, said),
    bar,
    one.exhausted
      ? h("p", { class: "refusal" }, "The hard cap is reached: projects are paused, and nothing new starts.")
      : undefined,
    facts([
      ["Notices at", one.notices.map((notice) => `${notice} %`).join(", ") || "none"],
      ["Reached", reached.length === 0 ? undefined : reached.slice(0, -1)],
      ["Hard cap", one.hard_cap ? "yes" : "no"],
      ["Counts again from", fullMoment(one.next_reset_at)],
    ]),
  );
}

interface Changes {
  /** By now; undefined where that is not known. */
  spent: () => string | undefined;
  save: (of: Budget | undefined, now: BudgetForm) => Promise<string>;
  remove: () => Promise<string>;
  outcome: Outcome;
  signal: AbortSignal;
}

function budgetChange(of: Budget | undefined, { spent, save, remove, ...common }: Changes) {
  const { elements, read, warn } = fields(of, spent);
  const run = () => save(of, read());
  const name = of === undefined ? "Set a budget" : "Change the budget";
  const element = h(
    "details",
    {},
    h("summary", { "data-key": "change budget" }, name),
    changeForm("Save", { run, ...common }, ...elements),
    of && h("div", { class: "actions" }, action("Remove the budget", { run: remove, ...common }, true)),
  );
  return { element, warn };
}

interface Fields {
  elements: Child[];
  read: () => BudgetForm;
  /** Says what the hard cap does, by what is spent by now. */
  warn: () => void;
}

function fields(of: Budget | undefined, spent: () => string | undefined): Fields {
  const made = budgetForm(of);
  const input = (value: string, pattern: string, title: string) =>
    h("input", { value, pattern, title, maxlength: 64, autocomplete: "off", spellcheck: "false" });
  const amount = input(made.amount, "[0-9]+(\\.[0-9]+)?", "A number such as 1500 or 99.50");
  amount.required = true;
  amount.inputMode = "decimal";
  amount.placeholder = "1500.00";
  const notices = input(made.notices, "[0-9]+([ ,]+[0-9]+)*", "Whole numbers with commas between");
  const isCapped = h("input", { type: "checkbox", checked: made.isCapped });
  const warning = h("p", { class: "refusal", role: "status" });
  const meant = h("p", { class: "quiet", role: "status" }, meantAmount(made.amount));
  const read = () => ({ amount: amount.value, notices: notices.value, isCapped: isCapped.checked });
  const warn = () => {
    const said = capWarning(read(), spent());
    // What is the same is not announced again.
    if (warning.textContent !== said) {
      warning.textContent = said;
    }
  };
  amount.addEventListener("input", () => {
    meant.textContent = meantAmount(amount.value);
    warn();
  });
  isCapped.addEventListener("change", warn);
  const field = (name: string, element: HTMLElement) =>
    h("label", { class: "field" }, h("span", {}, name), element);
  return {
    elements: [
      field("Budget of a billing cycle, R$", amount),
      meant,
      field("Notices at percent", notices),
      h("label", { class: "check" }, isCapped, "Hard cap"),
      ...CAP.map((line) => h("p", { class: "quiet" }, line)),
      warning,
    ],
    read,
    warn,
  };
}

const CAP = [
  "Notices are sent to webhooks and recipients of e-mail that have subscribed to budget.reached.",
  "With a hard cap every project is paused within about a minute once all of the budget is spent: applications, workers and databases have " +
    "no instance, and schedules of jobs rest. Data is kept, and its storage is still charged; runs that have begun end. Nothing new starts.",
  "What it has paused is resumed with a larger budget, without one, without the cap, or in the next billing cycle.",
];

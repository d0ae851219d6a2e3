import { ApiFailure } from "./api.ts";
import { type Child, h } from "./dom.ts";

/** What is shown where there is nothing to show. */

export function loading(): HTMLElement {
  return h(
    "p",
    { class: "state loading", role: "status" },
    h("span", { class: "spinner", "aria-hidden": true }),
    "Loading…",
  );
}

export function empty(title: string, ...more: readonly Child[]): HTMLElement {
  return h("div", { class: "state" }, h("p", { class: "state-title" }, title), ...more);
}

const TITLES: Readonly<Record<number, string>> = {
  0: "The server cannot be reached",
  402: "This plan has no metrics",
  403: "Not allowed",
  404: "Not found",
  429: "Too many requests",
  503: "Not available now",
};

/** Codes that say that the plan lacks the feature, whatever their status. */
const OF_PLAN = /_NOT_AVAILABLE_FOR_PLAN$/;

/** What went wrong, in the API's own words, and whether it is tried again. */
export function failed(error: unknown, isTriedAgain: boolean): HTMLElement {
  const failure = error instanceof ApiFailure ? error : undefined;
  const isOfPlan = failure?.status === 402 || OF_PLAN.test(failure?.code ?? "");
  const title = isOfPlan
    ? "This plan does not include this"
    : (TITLES[failure?.status ?? -1] ?? "Something went wrong");
  // What is no answer of the API is a mistake of the page: its text is of no use to its reader.
  const message = failure?.message ?? "The page could not make sense of the answer.";
  return h(
    "div",
    { class: isOfPlan ? "state" : "state failed", role: isOfPlan ? undefined : "alert" },
    h("p", { class: "state-title" }, title),
    h("p", {}, sentence(message)),
    failure && failure.status !== 0 ? h("p", { class: "code" }, failure.code) : undefined,
    isTriedAgain ? h("p", { class: "quiet" }, "It is tried again by itself.") : undefined,
  );
}

/** A small line above what is shown still, while it cannot be refreshed. */
export function outdated(): HTMLElement {
  return h(
    "p",
    { class: "banner", role: "status" },
    "This cannot be refreshed at the moment; it is tried again by itself.",
  );
}

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

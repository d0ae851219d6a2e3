import { type Api, ApiFailure } from "./api.ts";
import { type Child, h, replace } from "./dom.ts";
import { LoadOrder } from "./load-order.ts";
import type { Route } from "./route.ts";
import type { Project } from "./shapes.ts";
import { isPassing, poll } from "./updates.ts";

/** What a view is given, and what it shows while its value is loading, empty, failed or outdated. */

/** The context of a view. The signal is aborted when another view is opened. */
export interface Context {
  api: Api;
  signal: AbortSignal;
}

interface Refreshed<Value> {
  intervalMs: number;
  load: () => Promise<Value>;
  /** What to show; rendered again only when the value changes. */
  show: (value: Value) => Node | readonly Node[];
  /** Whether the value will not change any more. */
  isFinal?: (value: Value) => boolean;
}

/**
 * Fills an element with the loaded value, and keeps it current: loading, the value, or why there is none.
 * @returns loads it now, after a change
 */
export function refreshed<Value>(
  place: Element,
  of: Refreshed<Value>,
  { signal }: Pick<Context, "signal">,
): () => Promise<void> {
  let shown: string | undefined;
  let isOutdated = false;
  const loads = new LoadOrder();
  replace(place, loading());
  const overtaken = new WeakSet<object>();
  const load = async () => {
    const begun = loads.begin();
    try {
      return { value: await of.load(), begun };
    } catch (error) {
      if (error instanceof Error && !begun.isNewest()) {
        overtaken.add(error);
      }
      throw error;
    }
  };
  const show = ({ value, begun }: Awaited<ReturnType<typeof load>>) => {
    // A poll that began before a change, and is answered after it, has what was there before.
    if (!begun.show()) {
      return;
    }
    const text = JSON.stringify(value);
    if (text !== shown || isOutdated) {
      replace(place, of.show(value));
    }
    shown = text;
    isOutdated = false;
    return of.isFinal?.(value);
  };
  const fail = (error: unknown) => {
    // What is shown was requested later, and is current.
    if (error instanceof Error && overtaken.has(error) && isPassing(error)) {
      return;
    }
    // The last value stays during a temporary failure.
    if (shown === undefined || !isPassing(error)) {
      shown = undefined;
      replace(place, failed(error, isPassing(error)));
    } else if (!isOutdated) {
      isOutdated = true;
      place.prepend(outdated());
    }
  };
  void poll({ intervalMs: of.intervalMs, load, show, fail }, signal);
  return async () => {
    try {
      const loaded = await load();
      if (!signal.aborted) {
        show(loaded);
      }
    } catch (error) {
      if (!signal.aborted) {
        fail(error);
      }
    }
  };
}

export type ProjectRoute = Extract<Route, { view: "project" }>;

/** What a part of a project's page is given. */
export interface ProjectContext extends Context {
  route: ProjectRoute;
  /** As it was when the part was opened. */
  project: Project;
  /** Calls back with the project as it changes, until the part is left. */
  onChange: (changed: (project: Project) => void) => void;
}

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
  const message = failure ? explained(failure) : NO_SENSE;
  return h(
    "div",
    { class: isOfPlan ? "state" : "state failed", role: isOfPlan ? undefined : "alert" },
    h("p", { class: "state-title" }, title),
    h("p", {}, message),
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

const NO_SENSE = "The page could not make sense of the answer.";

/**
 * Why something was refused, in a sentence: by its code where the view has words of its own, else in the API's, with the grants that the key
 * lacks.
 */
export function explained(error: unknown, ofCode: Readonly<Record<string, string>> = {}): string {
  if (!(error instanceof ApiFailure)) {
    return NO_SENSE;
  }
  const { code, message, required } = error;
  const own = Object.hasOwn(ofCode, code) ? ofCode[code] : undefined;
  const needed = required.length === 0 ? "" : ` Needed: ${required.join(", ")}.`;
  return `${sentence(own ?? message)}${needed}`;
}

export function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

import { type Attributes, type Child, h } from "./dom.ts";
import { ago, dateTime, words } from "./format.ts";
import { visible } from "./log-text.ts";

/** Small elements that several views share. */

const GOOD = new Set(["running", "succeeded", "success", "available", "active", "ok", "paid"]);
const BAD = new Set(["failed", "failing", "deadline_exceeded", "unavailable", "firing", "overdue"]);
const MOVING = new Set([
  "creating",
  "deploying",
  "downloading",
  "resuming",
  "building",
  "pending",
  "in_progress",
  "deleting",
]);

/** A status as a badge: by its word and a mark, not by colour alone. A run that is `running` moves, a project does not. */
export function badge(status: string, isMoving = MOVING.has(status)): HTMLElement {
  const kind = isMoving ? "moving" : GOOD.has(status) ? "good" : BAD.has(status) ? "bad" : "still";
  return h("span", { class: `badge ${kind}` }, words(status));
}

/** A moment: how long ago, and in full as its tooltip. */
export function moment(iso: string | null | undefined): HTMLElement | string {
  const at = new Date(iso ?? Number.NaN);
  if (Number.isNaN(at.getTime())) {
    return "–";
  }
  return h("time", { datetime: at.toISOString(), title: dateTime(at) }, ago(at.getTime(), Date.now()));
}

/** A moment in full. */
export function fullMoment(iso: string | null | undefined): HTMLElement | string {
  const at = new Date(iso ?? Number.NaN);
  if (Number.isNaN(at.getTime())) {
    return "–";
  }
  return h("time", { datetime: at.toISOString(), title: at.toISOString() }, dateTime(at));
}

/** Text of others, that may be anything. */
export const text = (value: string): string => visible(value);

export function card(title: string, ...children: readonly (Child | readonly Child[])[]): HTMLElement {
  return h("section", { class: "card" }, h("h2", {}, title), ...children);
}

/** One figure with its name. */
export function tile(name: string, value: string, note?: string): HTMLElement {
  return h(
    "div",
    { class: "tile" },
    h("dt", {}, name),
    h("dd", {}, value, note === undefined ? undefined : h("small", {}, note)),
  );
}

export const tiles = (...all: readonly HTMLElement[]): HTMLElement => h("dl", { class: "tiles" }, ...all);

/** Names and values; those without a value are left out. */
export function facts(all: readonly (readonly [string, Child | readonly Child[]])[]): HTMLElement {
  return h(
    "dl",
    { class: "facts" },
    ...all
      .filter(([, value]) => value !== undefined && value !== "")
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, ...[value].flat()))),
  );
}

export interface Column<Row> {
  name: string;
  cell: (row: Row) => Child | readonly Child[];
  /** Numbers are aligned in columns. */
  isNumber?: true;
}

/** A table that becomes a list of cards where it is narrow. */
export function table<Row>(
  caption: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): HTMLElement {
  const number = (column: Column<Row>): Attributes => (column.isNumber ? { class: "number" } : {});
  const head = columns.map((column) => h("th", { scope: "col", ...number(column) }, column.name));
  const body = rows.map((row) =>
    h(
      "tr",
      {},
      ...columns.map((column, index) => {
        const content = [column.cell(row)].flat();
        const attributes = { "data-name": column.name, ...number(column) };
        return index === 0 ? h("th", { scope: "row", ...attributes }, content) : h("td", attributes, content);
      }),
    ),
  );
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "rows" },
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, ...head)),
      h("tbody", {}, ...body),
    ),
  );
}

/**
 * Leads to the pages around one. Nothing where all is on one.
 * @param to the address of a page; or shows it, for a list that is not the only one at its address
 * @param name of the navigation, where there are several
 */
export function pages(
  page: number,
  last: number,
  to: (page: number) => string | (() => void),
  name = "Pages",
): HTMLElement | undefined {
  if (last <= 1) {
    return undefined;
  }
  const step = (label: string, target: number) => {
    const isThere = target >= 1 && target <= last;
    const key = { "data-key": `${name} ${label}` };
    const where = to(target);
    if (typeof where === "string") {
      return isThere
        ? h("a", { class: "button", href: where, ...key }, label)
        : h("span", { class: "button off", "aria-hidden": true }, label);
    }
    // It stays, without a page to show, too: so it keeps the focus.
    const state = isThere ? { onclick: where } : { class: "button off", "aria-disabled": true };
    return h("button", { type: "button", ...state, ...key }, label);
  };
  return h(
    "nav",
    { class: "pages", "aria-label": name },
    step("Previous", page - 1),
    h("span", {}, `Page ${page} of ${last}`),
    step("Next", page + 1),
  );
}

/** A choice that takes effect immediately. */
export function choice(
  name: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string,
  choose: (value: string) => void,
): HTMLElement {
  const select = h(
    "select",
    { "data-key": name, onchange: () => choose(select.value) },
    ...options.map(([value, label]) => h("option", { value, selected: value === chosen }, label)),
  );
  return h("label", { class: "field" }, h("span", {}, name), select);
}

import { cycleOf, recentCycles } from "../lib/cycles.ts";
import { h } from "../lib/dom.ts";
import { brl, count, words } from "../lib/format.ts";
import {
  badge,
  type Column,
  card,
  choice,
  fullMoment,
  pages,
  table,
  text,
  tile,
  tiles,
} from "../lib/parts.ts";
import { link, type Route, withQuery } from "../lib/route.ts";
import type { KindCost, ProjectCost, Usage } from "../lib/shapes.ts";
import { type Context, empty, refreshed } from "../lib/view.ts";
import { budget } from "./budget.ts";
import { invoices } from "./invoices.ts";

const POLL_INTERVAL_MS = 30_000;

/** What the organization was charged in a billing cycle, its forecast, and by which projects; its budget and its invoices. */
export function costs(context: Context, route: Extract<Route, { view: "costs" }>): HTMLElement {
  const { api, signal } = context;
  const now = new Date();
  const cycle = cycleOf(route.query.get("cycle"), now);
  const page = Math.max(1, Number.parseInt(route.query.get("page") ?? "", 10) || 1);
  const place = h("div", { class: "stack" });
  let charged: (amount: string) => void = () => {};
  refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () => (await api.get<Usage>("/v1/organization/usage", { cycle, page }, signal)).data,
      show: (usage) => {
        charged(usage.amount);
        return [summary(usage), ...parts(usage, route)];
      },
    },
    { signal },
  );
  const [current = "", ...earlier] = recentCycles(now);
  const options = [["", `${current} (now)`], ...earlier.map((one) => [one, one] as const)] as const;
  return h(
    "div",
    { class: "stack" },
    h("p", { class: "quiet" }, h("a", { href: link(["projects"]) }, "All projects")),
    h(
      "div",
      { class: "card-head" },
      h("h1", { tabindex: -1 }, "Costs"),
      choice("Billing cycle", options, cycle ?? "", (to) => {
        location.hash = withQuery(route, { cycle: to, page: undefined });
      }),
    ),
    // It is of the current cycle alone.
    cycle === undefined || cycle === current
      ? budget(context, (listener) => {
          charged = listener;
        })
      : undefined,
    place,
    invoices(context),
  );
}

function summary({ amount, forecast, plans_metered, cycle_started_at, next_reset_at }: Usage): HTMLElement {
  const figures = [
    tile(forecast === null ? "Charged" : "So far", brl(amount)),
    ...(forecast === null ? [] : [tile("Forecast", brl(forecast.amount), "if nothing changes")]),
  ];
  return card(
    `Cycle ${cycle_started_at.slice(0, 7)}`,
    tiles(...figures),
    h("p", { class: "quiet" }, "From ", fullMoment(cycle_started_at), " to ", fullMoment(next_reset_at), "."),
    plans_metered
      ? undefined
      : h("p", { class: "quiet" }, "Plans are not metered: runs and storage of jobs alone are charged."),
  );
}

function parts({ kinds, days, projects, pagination }: Usage, route: Route): HTMLElement[] {
  if (pagination.total === 0) {
    return [h("div", { class: "card" }, empty("Nothing was charged in this billing cycle"))];
  }
  const total = pagination.total === 1 ? "1 project" : `${count(pagination.total)} projects`;
  return [
    section(
      "By project",
      table("By project", projectColumns, projects),
      h(
        "div",
        { class: "foot" },
        h("span", { class: "quiet" }, total),
        pages(pagination.page, pagination.total_pages, (to) => withQuery(route, { page: String(to) })),
      ),
    ),
    section("By kind", table("By kind", kindColumns, kinds)),
    section("By day", table("By day", dayColumns, days)),
  ];
}

const section = (title: string, ...content: HTMLElement[]): HTMLElement =>
  h("section", { class: "card flush" }, h("div", { class: "card-head" }, h("h2", {}, title)), ...content);

const projectColumns: Column<ProjectCost>[] = [
  {
    name: "Project",
    cell: ({ project_id: id, name, deleted }) =>
      deleted
        ? [text(name ?? id), " ", badge("deleted")]
        : h(
            "a",
            { href: link(["project", id]), class: "strong", "data-key": `project ${id}` },
            text(name ?? id),
          ),
  },
  { name: "Id", cell: ({ project_id: id }) => h("code", {}, text(id)) },
  { name: "For", cell: ({ kinds }) => kinds.map(({ kind }) => words(kind)).join(", ") },
  { name: "Cost", cell: ({ amount }) => brl(amount), isNumber: true },
];

const kindColumns: Column<KindCost>[] = [
  { name: "Kind", cell: ({ kind }) => words(kind) },
  { name: "Charges", cell: ({ charges }) => count(charges), isNumber: true },
  { name: "Cost", cell: ({ amount }) => brl(amount), isNumber: true },
];

const dayColumns: Column<Usage["days"][number]>[] = [
  { name: "Day (UTC)", cell: ({ day }) => text(day) },
  { name: "Cost", cell: ({ amount }) => brl(amount), isNumber: true },
];

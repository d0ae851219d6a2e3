import { h } from "../lib/dom.ts";
import { words } from "../lib/format.ts";
import { badge, choice, pages, table, text } from "../lib/parts.ts";
import { link, type Route, withQuery } from "../lib/route.ts";
import type { ProjectItem, ProjectList } from "../lib/shapes.ts";
import { type Context, empty, refreshed } from "../lib/view.ts";
import { logDrains } from "./log-drains.ts";

const TYPES = ["http", "worker", "job", "postgresql", "mariadb", "clickhouse", "valkey"];
const STATUSES = [
  "creating",
  "running",
  "resuming",
  "stopped",
  "downloading",
  "failed",
  "failing",
  "deploying",
];
const POLL_INTERVAL_MS = 5_000;
/** Milliseconds after the last key that is searched. */
const TYPING_MS = 300;

const any = (names: readonly string[]) =>
  [["", "Any"], ...names.map((name) => [name, words(name)] as const)] as const;

/** The list of projects that the key can read. */
export function projects(context: Context, route: Extract<Route, { view: "projects" }>): HTMLElement {
  const parameter = (name: string) => route.query.get(name) ?? "";
  const goTo = (change: Record<string, string | undefined>) => {
    location.hash = withQuery(route, { page: undefined, ...change });
  };
  const search = h("input", {
    type: "search",
    value: parameter("search"),
    maxlength: 256,
    placeholder: "Name or description",
    "data-key": "search",
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => goTo({ search: search.value }), TYPING_MS);
  });
  context.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });

  const page = Math.max(1, Number.parseInt(parameter("page"), 10) || 1);
  const query = {
    page,
    type: TYPES.find((one) => one === parameter("type")),
    status: STATUSES.find((one) => one === parameter("status")),
    search: parameter("search").trim().slice(0, 256),
  };
  const isFiltered = query.type !== undefined || query.status !== undefined || query.search !== "";
  const place = h("div", { class: "card flush" });
  refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () => (await context.api.get<ProjectList>("/v1/project", query, context.signal)).data,
      show: ({ projects: found, pagination }) =>
        found.length === 0
          ? isFiltered
            ? empty(
                "No project is like that",
                h("p", {}, h("a", { href: link(["projects"]) }, "Show all projects")),
              )
            : empty(
                "No projects yet",
                h(
                  "p",
                  {},
                  "They are created with ",
                  h("code", {}, "POST /v1/project"),
                  ": ",
                  h("a", { href: "/docs" }, "read how"),
                  ".",
                ),
              )
          : [
              table("Projects", columns, found),
              h(
                "div",
                { class: "foot" },
                h(
                  "span",
                  { class: "quiet" },
                  pagination.total === 1 ? "1 project" : `${pagination.total} projects`,
                ),
                pages(page, pagination.pages, (to) => withQuery(route, { page: String(to) })),
              ),
            ],
    },
    context,
  );
  return h(
    "div",
    { class: "stack" },
    h("h1", { tabindex: -1 }, "Projects"),
    h(
      "search",
      { class: "filters" },
      h("label", { class: "field grow" }, h("span", {}, "Search"), search),
      choice("Type", any(TYPES), parameter("type"), (type) => goTo({ type })),
      choice("Status", any(STATUSES), parameter("status"), (status) => goTo({ status })),
    ),
    place,
    logDrains(context),
    h("p", {}, h("a", { href: link(["notifications"]) }, "Notifications"), " by webhook and e-mail"),
    h("p", {}, h("a", { href: link(["costs"]) }, "Costs"), " of this billing cycle, and of earlier ones"),
  );
}

const columns = [
  {
    name: "Name",
    cell: ({ id, name }: ProjectItem) =>
      h("a", { href: link(["project", id]), "data-key": `project ${id}`, class: "strong" }, text(name)),
  },
  { name: "Status", cell: ({ status }: ProjectItem) => badge(status) },
  {
    name: "Type",
    cell: ({ type_project, managed_service }: ProjectItem) =>
      managed_service ? `${type_project} · ${words(managed_service.profile)}` : type_project,
  },
  { name: "Plan", cell: ({ plan }: ProjectItem) => plan },
  { name: "Id", cell: ({ id }: ProjectItem) => h("code", {}, id) },
];

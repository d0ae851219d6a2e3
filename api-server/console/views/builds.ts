import { projectPath } from "../lib/api.ts";
import { h } from "../lib/dom.ts";
import { duration, words } from "../lib/format.ts";
import { logPane } from "../lib/log-pane.ts";
import { badge, card, facts, fullMoment, moment, pages, table, text } from "../lib/parts.ts";
import { link, withQuery } from "../lib/route.ts";
import type { Build, BuildLine } from "../lib/shapes.ts";
import { follow } from "../lib/updates.ts";
import { empty, failed, type ProjectContext, refreshed } from "../lib/view.ts";

const POLL_INTERVAL_MS = 5_000;
const PER_PAGE = 10;

/** The builds that are kept. */
export function builds(context: ProjectContext): HTMLElement {
  const { api, signal, route } = context;
  const page = Math.max(1, Number.parseInt(route.query.get("page") ?? "", 10) || 1);
  const list = h("div", {});
  refreshed(
    list,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: () => api.get<Build[]>(projectPath(route.project, "builds"), { page, limit: PER_PAGE }, signal),
      show: ({ data, pagination }) =>
        data.length === 0
          ? empty("No builds", h("p", {}, "A project has builds once it comes from a Git repository."))
          : [
              table("Builds", columns(route.project), data),
              h(
                "div",
                { class: "foot" },
                h("span", { class: "quiet" }, "At most 30 are kept, for 30 days."),
                pages(page, Math.ceil((pagination?.total ?? 0) / PER_PAGE), (to) =>
                  withQuery(route, { page: String(to) }),
                ),
              ),
            ],
    },
    context,
  );
  return h("section", { class: "card flush" }, h("h2", {}, "Builds"), list);
}

const commit = ({ commit_sha }: Build) =>
  commit_sha ? h("code", { title: commit_sha }, commit_sha.slice(0, 10)) : "–";
const lasted = ({ started_at, finished_at }: Build) =>
  started_at && finished_at ? duration((Date.parse(finished_at) - Date.parse(started_at)) / 1_000) : "–";

const columns = (project: string) => [
  {
    name: "When",
    cell: ({ id, created_at }: Build) =>
      h(
        "a",
        { href: link(["project", project, "builds", id]), "data-key": `build ${id}` },
        fullMoment(created_at),
      ),
  },
  {
    name: "Status",
    cell: ({ status, error_code }: Build) => [
      badge(status),
      error_code ? h("small", {}, h("code", {}, text(error_code))) : undefined,
    ],
  },
  { name: "Commit", cell: commit },
  { name: "Of", cell: ({ branch, tag }: Build) => text(tag ?? branch ?? "–") },
  { name: "By", cell: ({ triggered_by }: Build) => words(triggered_by) },
  { name: "Duration", cell: lasted, isNumber: true as const },
];

const isOver = ({ status }: Pick<Build, "status">) => status !== "pending" && status !== "building";

/** One build, and its log as it is written. */
export function build(context: ProjectContext, id: string): HTMLElement {
  const { api, signal, route } = context;
  const path = projectPath(route.project, "builds", id);
  const about = h("div", {});
  refreshed(
    about,
    {
      intervalMs: POLL_INTERVAL_MS / 2,
      load: async () => (await api.get<Build>(path, {}, signal)).data,
      show: describe,
      isFinal: isOver,
    },
    context,
  );
  const pane = logPane("Log of the build");
  void followLog().catch((error: unknown) => {
    if (!signal.aborted) {
      pane.element.replaceChildren(failed(error, false));
    }
  });
  return h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "title" },
      h("a", { href: link(["project", route.project, "builds"]) }, "Builds"),
      h("span", { "aria-hidden": true }, "/"),
      h("code", {}, id),
    ),
    card("Build", about),
    h("section", { class: "card" }, h("h2", {}, "Log"), pane.element),
  );

  function followLog(): Promise<void> {
    return follow(
      api,
      {
        path: projectPath(route.project, "builds", id, "logs"),
        query: { limit: 500 },
        state: (isOpen) => pane.state(isOpen ? "Live" : "Connecting", isOpen ? "good" : "moving"),
        event: ({ name, data }) => {
          if (name === "log") {
            const { message, step, level } = JSON.parse(data) as BuildLine;
            pane.append([{ text: message, label: step, isError: level === "error" }]);
          }
          if (name !== "end") {
            return false;
          }
          const { truncated } = JSON.parse(data) as { truncated?: boolean };
          if (truncated) {
            pane.append([{ text: "The log was cut here.", label: "console" }]);
          }
          pane.state("Ended");
          return true;
        },
      },
      signal,
    );
  }
}

function describe(one: Build): HTMLElement[] {
  return [
    facts([
      ["Status", badge(one.status)],
      ["Commit", one.commit_sha ? h("code", { class: "long" }, one.commit_sha) : undefined],
      ["Branch", one.branch ? text(one.branch) : undefined],
      ["Tag", one.tag ? text(one.tag) : undefined],
      ["Started by", words(one.triggered_by)],
      ["Created", fullMoment(one.created_at)],
      ["Started", one.started_at ? moment(one.started_at) : undefined],
      ["Duration", one.finished_at ? lasted(one) : undefined],
    ]),
    ...(one.error_code || one.error_message
      ? [
          h(
            "div",
            { class: "state failed" },
            h("p", {}, text(one.error_message ?? "")),
            one.error_code ? h("p", { class: "code" }, text(one.error_code)) : undefined,
          ),
        ]
      : []),
  ];
}

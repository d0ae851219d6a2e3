import { projectPath } from "../lib/api.ts";
import { h } from "../lib/dom.ts";
import { brl, bytes, cores, count, duration, words } from "../lib/format.ts";
import { logPane } from "../lib/log-pane.ts";
import { newLines } from "../lib/log-text.ts";
import { badge, card, choice, fullMoment, moment, pages, table, tile, tiles } from "../lib/parts.ts";
import { link, withQuery } from "../lib/route.ts";
import type { CostSummary, Run, RunList, RunLog, RunMetrics } from "../lib/shapes.ts";
import { isPassing, poll } from "../lib/updates.ts";
import { empty, failed, type ProjectContext, refreshed } from "../lib/view.ts";

const POLL_INTERVAL_MS = 5_000;
const STATUSES = ["running", "succeeded", "failed", "deadline_exceeded", "cancelled"];

const isJob = ({ project }: ProjectContext): boolean => project.type_project === "job";
/** The part of a project's path that has its runs: those of a job, or one-off runs. */
const partOf = (context: ProjectContext): string => (isJob(context) ? "job-runs" : "runs");

/** The runs of this billing cycle, and what they cost. */
export function runs(context: ProjectContext): HTMLElement {
  const { api, signal, route } = context;
  const costs = h("div", {});
  refreshed(
    costs,
    {
      intervalMs: 2 * POLL_INTERVAL_MS,
      load: async () =>
        (await api.get<CostSummary>(projectPath(route.project, partOf(context), "cost-summary"), {}, signal))
          .data,
      show: (found) => summary(found),
    },
    context,
  );
  const page = Math.max(1, Number.parseInt(route.query.get("page") ?? "", 10) || 1);
  const statuses = isJob(context) ? STATUSES : ["pending", ...STATUSES];
  const status = statuses.find((one) => one === route.query.get("status"));
  const list = h("div", {});
  refreshed(
    list,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () =>
        (await api.get<RunList>(projectPath(route.project, partOf(context)), { page, status }, signal)).data,
      show: ({ runs: found, pagination }) =>
        found.length === 0
          ? empty(status === undefined ? "No runs in this billing cycle" : "No runs with this status")
          : [
              table("Runs of this billing cycle", columns(context), found),
              h(
                "div",
                { class: "foot" },
                h(
                  "span",
                  { class: "quiet" },
                  pagination.total === 1 ? "1 run" : `${count(pagination.total)} runs`,
                ),
                pages(page, pagination.total_pages, (to) => withQuery(route, { page: String(to) })),
              ),
            ],
    },
    context,
  );
  const options = [["", "Any"], ...statuses.map((one) => [one, words(one)] as const)] as const;
  return h(
    "div",
    { class: "stack" },
    card("Cost of this billing cycle", costs),
    h(
      "section",
      { class: "card flush" },
      h(
        "div",
        { class: "card-head" },
        h("h2", {}, "Runs"),
        choice("Status", options, status ?? "", (to) => {
          location.hash = withQuery(route, { status: to, page: undefined });
        }),
      ),
      list,
    ),
  );
}

function summary({ totals, cycle_started_at, next_reset_at }: CostSummary): HTMLElement[] {
  const [total] = totals;
  return [
    tiles(
      tile("Cost", brl(total?.total_amount ?? 0)),
      tile("Runs", count(total?.executed_runs ?? 0)),
      tile("Billed minutes", count(total?.billed_minutes ?? 0)),
    ),
    h(
      "p",
      { class: "quiet" },
      "Since ",
      fullMoment(cycle_started_at),
      "; begins anew on ",
      fullMoment(next_reset_at),
      ".",
    ),
  ];
}

const columns = (context: ProjectContext) => [
  {
    name: isJob(context) ? "Scheduled" : "Requested",
    cell: ({ id, scheduled_at, requested_at }: Run) =>
      h(
        "a",
        { href: link(["project", context.route.project, "runs", id]), "data-key": `run ${id}` },
        fullMoment(scheduled_at ?? requested_at),
      ),
  },
  { name: "Status", cell: ({ status }: Run) => badge(status, isUnderWay(status)) },
  {
    name: "Started",
    cell: ({ started_at, trigger }: Run) => [
      moment(started_at),
      trigger === "manual" ? h("small", {}, "by hand") : undefined,
    ],
  },
  ...(isJob(context) ? [] : [COMMAND, EXIT_CODE]),
  {
    name: "Duration",
    cell: ({ duration_seconds }: Run) => duration(duration_seconds),
    isNumber: true as const,
  },
  {
    name: "Billed",
    cell: ({ billed_minutes }: Run) => (billed_minutes === undefined ? "–" : `${billed_minutes} min`),
    isNumber: true as const,
  },
  { name: "Cost", cell: ({ amount }: Run) => brl(amount), isNumber: true as const },
];

const isUnderWay = (status: string): boolean => status === "running" || status === "pending";

const COMMAND = {
  name: "Command",
  cell: ({ command }: Run) => (command === undefined ? "–" : h("code", {}, command.join(" "))),
};

const EXIT_CODE = {
  name: "Exit code",
  cell: ({ exit_code }: Run) => (exit_code === undefined ? "–" : String(exit_code)),
  isNumber: true as const,
};

/** One run: its state, what it used, and its log while it is written. */
export function run(context: ProjectContext, id: string): HTMLElement {
  const { api, signal, route } = context;
  const path = (part: string) => projectPath(route.project, partOf(context), id, part);
  const pane = logPane("Log of the run");
  const state = h("div", { class: "title" });
  let before: readonly string[] = [];
  void poll(
    {
      intervalMs: POLL_INTERVAL_MS / 2,
      load: async () => (await api.get<RunLog>(path("logs"), {}, signal)).data,
      show: ({ run: about, logs }) => {
        const isRunning = isUnderWay(about.status);
        state.replaceChildren(badge(about.status, isRunning));
        const now = logs === "" ? [] : logs.replace(/\n$/, "").split("\n");
        pane.append(newLines(before, now).map((text) => ({ text })));
        before = now;
        pane.state(isRunning ? "Live" : "Ended", isRunning ? "good" : "still");
        return !isRunning;
      },
      fail: (error) => {
        if (isPassing(error)) {
          pane.state("Trying again", "moving");
        } else {
          pane.element.replaceChildren(failed(error, false));
        }
      },
    },
    signal,
  );
  return h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "title" },
      h("a", { href: link(["project", route.project, "runs"]) }, "Runs"),
      h("span", { "aria-hidden": true }, "/"),
      h("code", {}, id),
      state,
    ),
    ...(isJob(context) ? [card("Used", usage(context, path("metrics")))] : []),
    h("section", { class: "card" }, h("h2", {}, "Log"), pane.element),
  );
}

function usage(context: ProjectContext, path: string): HTMLElement {
  const used = h("div", {});
  refreshed(
    used,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () => (await context.api.get<RunMetrics>(path, {}, context.signal)).data,
      show: measured,
      isFinal: ({ status }) => status !== "collecting",
    },
    context,
  );
  return used;
}

function measured({ status, cpu, memory, samples }: RunMetrics): HTMLElement {
  if (status === "unavailable") {
    return empty("Nothing was measured", h("p", {}, "The run was too short, or nobody could look."));
  }
  return tiles(
    cpu?.latest_cores === undefined
      ? tile("CPU on average", cores(cpu?.average_cores))
      : tile("CPU now", cores(cpu.latest_cores)),
    tile("CPU at most", cores(cpu?.peak_cores)),
    memory?.latest_bytes === undefined
      ? tile("Memory on average", bytes(memory?.average_bytes))
      : tile("Memory now", bytes(memory.latest_bytes)),
    tile("Memory at most", bytes(memory?.peak_bytes)),
    tile("Samples", count(samples)),
  );
}

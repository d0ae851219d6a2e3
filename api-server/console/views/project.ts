import { projectPath } from "../lib/api.ts";
import { h, replace } from "../lib/dom.ts";
import { badge, text } from "../lib/parts.ts";
import { link, type Tab } from "../lib/route.ts";
import type { Project } from "../lib/shapes.ts";
import { isPassing, poll } from "../lib/updates.ts";
import { type Context, failed, loading, type ProjectContext, type ProjectRoute } from "../lib/view.ts";
import { alerts } from "./alerts.ts";
import { build, builds } from "./builds.ts";
import { logSearch } from "./log-search.ts";
import { logs } from "./logs.ts";
import { overview } from "./overview.ts";
import { run, runs } from "./runs.ts";
import { traffic } from "./traffic.ts";
import { usage } from "./usage.ts";

const NAMES: Readonly<Record<Tab, string>> = {
  overview: "Overview",
  traffic: "Traffic",
  usage: "Usage",
  logs: "Logs",
  runs: "Runs",
  builds: "Builds",
  alerts: "Alerts",
};

const isDatabase = (type: string) => !["http", "worker", "job"].includes(type);

/** The parts of a project's page that there are for its type. */
function tabsOf(type: string): Tab[] {
  if (type === "http") {
    return ["overview", "traffic", "usage", "logs", "runs", "builds", "alerts"];
  }
  if (type === "worker") {
    return ["overview", "usage", "logs", "runs", "builds", "alerts"];
  }
  return isDatabase(type)
    ? ["overview", "usage", "logs", "alerts"]
    : ["overview", "runs", "logs", "builds", "alerts"];
}

const POLL_INTERVAL_MS = 5_000;
/** The last state of a project, so that another of its views does not start empty. */
const lastSeen = new Map<string, Project>();

/** Clears what was read with another key. */
export const forgetProjects = (): void => lastSeen.clear();

export function project(context: Context, route: ProjectRoute): HTMLElement {
  const { api, signal } = context;
  const head = h("header", { class: "project-head" });
  const body = h("div", { class: "stack" });
  const listeners: ((project: Project) => void)[] = [];
  let shown: string | undefined;

  const show = (found: Project) => {
    lastSeen.set(route.project, found);
    const isFirst = shown === undefined;
    const now = JSON.stringify(found);
    if (now === shown) {
      return;
    }
    shown = now;
    replace(head, heading(found, route));
    document.title = `${text(found.name)} · ${NAMES[route.tab]} · Slipway`;
    if (isFirst) {
      const of = {
        ...context,
        route,
        project: found,
        onChange: (one: (project: Project) => void) => void listeners.push(one),
      };
      replace(body, part(of));
    } else {
      for (const listener of listeners) {
        listener(found);
      }
    }
  };
  const known = lastSeen.get(route.project);
  if (known) {
    show(known);
  } else {
    // Has the focus by then, and passes it on to the project's name.
    replace(head, h("h1", { tabindex: -1, class: "unseen", "data-key": "title" }, "Project"));
    replace(body, loading());
  }
  void poll(
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () => (await api.get<Project>(projectPath(route.project), {}, signal)).data,
      show: (found) => {
        show({ ...found, id: route.project });
        return false;
      },
      fail: (error) => {
        if (shown !== undefined && isPassing(error)) {
          return;
        }
        lastSeen.delete(route.project);
        replace(head, h("h1", { tabindex: -1, "data-key": "title" }, "Project"));
        replace(body, h("div", { class: "card" }, failed(error, isPassing(error)), backToList()));
      },
    },
    signal,
  );
  return h("div", { class: "stack" }, head, body);
}

const backToList = () => h("p", { class: "centered" }, h("a", { href: link(["projects"]) }, "All projects"));

function heading(found: Project, route: ProjectRoute): HTMLElement[] {
  const tabs = tabsOf(found.type_project).map((tab) =>
    h(
      "a",
      {
        href: link(tab === "overview" ? ["project", route.project] : ["project", route.project, tab]),
        "aria-current": tab === route.tab ? "page" : undefined,
        "data-key": `tab ${tab}`,
      },
      NAMES[tab],
    ),
  );
  return [
    h(
      "nav",
      { class: "crumbs", "aria-label": "Breadcrumb" },
      h("a", { href: link(["projects"]), "data-key": "all" }, "Projects"),
    ),
    h(
      "div",
      { class: "title" },
      h("h1", { tabindex: -1, "data-key": "title" }, text(found.name)),
      badge(found.sleeping_since === undefined ? found.status : "sleeping"),
      h("span", { class: "quiet" }, `${found.type_project} · ${found.plan}`),
    ),
    h("nav", { class: "tabs", "aria-label": "Parts of the project" }, ...tabs),
  ];
}

function part(of: ProjectContext): HTMLElement {
  const { tab, item } = of.route;
  const isThere = tabsOf(of.project.type_project).includes(tab);
  if (!isThere) {
    return h(
      "div",
      { class: "card" },
      h("p", { class: "state" }, "A project of this type has no such part."),
    );
  }
  if (tab === "traffic") {
    return traffic(of);
  }
  if (tab === "usage") {
    return usage(of);
  }
  if (tab === "logs") {
    return item === "search" ? logSearch(of) : logs(of);
  }
  if (tab === "runs") {
    return item === undefined ? runs(of) : run(of, item);
  }
  if (tab === "builds") {
    return item === undefined ? builds(of) : build(of, item);
  }
  if (tab === "alerts") {
    return alerts(of);
  }
  return overview(of);
}

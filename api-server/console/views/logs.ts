import { projectPath } from "../lib/api.ts";
import { h, replace } from "../lib/dom.ts";
import { logPane } from "../lib/log-pane.ts";
import { choice } from "../lib/parts.ts";
import { link, withQuery } from "../lib/route.ts";
import { follow } from "../lib/updates.ts";
import { failed, type ProjectContext } from "../lib/view.ts";

interface Instances {
  instances: string[];
  unavailable_instances: string[];
}

interface Line {
  instance: string;
  message: string;
}

/** Names of a project's instances that were seen: with one of them in the query, the API reports that one alone. */
const seen = new Map<string, Set<string>>();

/** What the application writes, as it writes it: of all instances, or of one. */
export function logs({ api, signal, route, project }: ProjectContext): HTMLElement {
  const instance = route.query.get("instance") || undefined;
  const path = projectPath(route.project, "logs");
  const pane = logPane("Log of the application");
  const picker = h("div", {});
  const place = h(
    "section",
    { class: "card" },
    h(
      "div",
      { class: "card-head" },
      h("h2", {}, "Log"),
      picker,
      // Logs of jobs are kept with their runs.
      project.type_project === "job"
        ? undefined
        : h(
            "a",
            {
              class: "button",
              href: link(["project", route.project, "logs", "search"], { instance }),
              "data-key": "search",
            },
            "Search",
          ),
    ),
    pane.element,
  );

  let names = "";
  const offer = (instances: readonly string[]) => {
    // Those of all instances are all that there are.
    const others = instance === undefined ? [] : (seen.get(route.project) ?? [instance]);
    const known = [...new Set([...others, ...instances])].sort();
    seen.set(route.project, new Set(known));
    if (names === known.join(" ")) {
      return;
    }
    names = known.join(" ");
    const options = [["", "All"], ...known.map((one) => [one, one] as const)] as const;
    replace(
      picker,
      choice("Instance", options, instance ?? "", (to) => {
        location.hash = withQuery(route, { instance: to });
      }),
    );
  };
  let missing = false;
  let isOpen = false;
  const showConnection = () => {
    if (!isOpen) {
      pane.state("Connecting", "moving");
    } else if (missing) {
      pane.state("Some instances do not answer", "moving");
    } else {
      pane.state("Live", "good");
    }
  };
  void follow(
    api,
    {
      path,
      query: { follow: "true", instance },
      state: (open) => {
        isOpen = open;
        showConnection();
      },
      event: ({ name, data }) => {
        if (name === "log") {
          const { instance: of, message } = JSON.parse(data) as Line;
          pane.append([{ text: message, label: names.includes(" ") ? of.slice(-5) : undefined }]);
        }
        if (name === "instances") {
          const now = JSON.parse(data) as Instances;
          offer(now.instances);
          missing = now.unavailable_instances.length > 0;
          showConnection();
        }
        if (name !== "end") {
          return false;
        }
        pane.state("Ended");
        return true;
      },
    },
    signal,
  ).catch((error: unknown) => {
    if (!signal.aborted) {
      place.replaceChildren(failed(error, false));
    }
  });
  return place;
}

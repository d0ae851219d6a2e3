import { projectPath } from "../lib/api.ts";
import { h, replace } from "../lib/dom.ts";
import { logPane } from "../lib/log-pane.ts";
import { newLines } from "../lib/new-lines.ts";
import { choice } from "../lib/parts.ts";
import { isPassing, poll } from "../lib/poll.ts";
import { withQuery } from "../lib/route.ts";
import { failed } from "../lib/states.ts";
import type { ProjectContext } from "./project.ts";

const EVERY_MS = 2_000;

/** Names of a project's instances that were seen: asked for one of them, the API tells of that one alone. */
const seen = new Map<string, Set<string>>();

/** What the application writes, as it writes it: of all instances, or of one. */
export function logs({ api, signal, route }: ProjectContext): HTMLElement {
  const instance = route.query.get("instance") || undefined;
  const path = projectPath(route.project, "logs");
  const pane = logPane("Log of the application");
  const picker = h("div", {});
  const place = h(
    "section",
    { class: "card" },
    h("div", { class: "card-head" }, h("h2", {}, "Log"), picker),
    pane.element,
  );

  let names = "";
  const offer = (instances: readonly string[]) => {
    // Those of all instances are all that there are.
    const others = instance === undefined ? [] : (seen.get(route.project) ?? [instance]);
    const known = [...new Set([...others, ...instances])].sort();
    seen.set(route.project, new Set(known));
    if (names === known.join(" ")) return;
    names = known.join(" ");
    const options = [["", "All"], ...known.map((one) => [one, one] as const)] as const;
    replace(
      picker,
      choice("Instance", options, instance ?? "", (to) => {
        location.hash = withQuery(route, { instance: to });
      }),
    );
  };
  let before: readonly string[] = [];
  void poll(
    {
      everyMs: EVERY_MS,
      ask: () => api.get<string | string[]>(path, { instance }, signal),
      show: ({ data, instances = [], unavailable_instances: missing = [] }) => {
        const now = typeof data === "string" ? data.split("\n") : data;
        pane.append(newLines(before, now).map((text) => ({ text })));
        before = now;
        offer(instances);
        if (missing.length > 0) pane.state("Some instances do not answer", "moving");
        else pane.state("Live", "good");
        return false;
      },
      fail: (error) => {
        if (isPassing(error)) pane.state("Trying again", "moving");
        else place.replaceChildren(failed(error, false));
      },
    },
    signal,
  );
  return place;
}

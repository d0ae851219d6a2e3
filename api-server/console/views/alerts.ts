import { outcome } from "../lib/actions.ts";
import { projectPath } from "../lib/api.ts";
import { h } from "../lib/dom.ts";
import { words } from "../lib/format.ts";
import { badge, type Column, moment, table, text } from "../lib/parts.ts";
import type { Alert } from "../lib/shapes.ts";
import { empty, type ProjectContext, refreshed } from "../lib/view.ts";
import { alertForm } from "./alert-form.ts";

const POLL_INTERVAL_MS = 10_000;

/** The alerts of a project: its rules, which of them fire, and a form that changes them. */
export function alerts(context: ProjectContext): HTMLElement {
  const { api, signal, route } = context;
  const path = projectPath(route.project, "alerts");
  const place = h("div", {});
  const form = h("div", {});
  const to = outcome();
  /** What the form was made from. */
  let made: string | undefined;
  let latest: Alert[] = [];
  const renewForm = (found: Alert[]) => {
    latest = found;
    // While it is closed: what is being typed is not replaced by a refresh.
    if (form.querySelector("details")?.open !== true && made !== JSON.stringify(found)) {
      made = JSON.stringify(found);
      form.replaceChildren(alertForm(context, found, { path, load, outcome: to, changed: saved }));
    }
  };
  const load = async () => (await api.get<{ alerts: Alert[] }>(path, {}, signal)).data.alerts;
  const saved = async () => {
    form.replaceChildren();
    made = undefined;
    await reload();
    // They may have been read between the change and its answer, and are not shown again then.
    renewForm(latest);
  };
  const reload = refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load,
      show: (found) => {
        renewForm(found);
        return found.length === 0 ? empty("No alerts") : table("Alerts", columns, found);
      },
    },
    { signal },
  );
  return h(
    "div",
    { class: "stack" },
    h("section", { class: "card flush" }, h("h2", {}, "Alerts"), place),
    to.element,
    form,
  );
}

const percent = (value: number | undefined): string => (value === undefined ? "–" : `${value} %`);

const columns: Column<Alert>[] = [
  { name: "Name", cell: ({ name }) => text(name) },
  { name: "State", cell: ({ state }) => badge(state) },
  { name: "Since", cell: ({ since }) => moment(since) },
  { name: "Watches", cell: ({ metric }) => words(metric) },
  { name: "From", cell: ({ threshold }) => percent(threshold), isNumber: true },
  {
    name: "For",
    cell: ({ for_seconds: seconds }) => (seconds === undefined ? "–" : `${seconds} s`),
    isNumber: true,
  },
  // What was measured when the state began: what is measured now is in the plots of use.
  { name: "Value then", cell: ({ value }) => percent(value), isNumber: true },
];

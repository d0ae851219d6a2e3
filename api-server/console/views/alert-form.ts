import { changeForm, type Outcome } from "../lib/actions.ts";
import { type AlertMetric, mergedRules, metricsOf, type RuleForm, ruleOf } from "../lib/alerts.ts";
import { h } from "../lib/dom.ts";
import { words } from "../lib/format.ts";
import { choice } from "../lib/parts.ts";
import type { Alert, AlertRule } from "../lib/shapes.ts";
import type { ProjectContext } from "../lib/view.ts";

/** The form of a project's alerts: a row for each rule. */

/** Metrics of a type of project, which the page names. */
const alertMetrics = (type: string): AlertMetric[] =>
  metricsOf(type, document.querySelector<HTMLMetaElement>('meta[name="alert-metrics"]')?.content ?? "");

/** Most rules of one project. */
const MOST = 10;

interface Row {
  element: HTMLElement;
  read: () => RuleForm;
}

/** The fields of one rule. */
function row(metrics: readonly AlertMetric[], of: AlertRule | undefined, remove: (row: Row) => void): Row {
  let metric = of?.metric ?? metrics[0]?.name ?? "";
  const name = h("input", {
    maxlength: 40,
    pattern: "[a-z0-9]([a-z0-9_\\-]*[a-z0-9])?",
    value: of?.name ?? "",
    placeholder: "As the metric",
    autocomplete: "off",
    spellcheck: "false",
  });
  const number = (bounds: { min: number; max: number; required?: true }, value: number | undefined) =>
    h("input", { type: "number", ...bounds, value: value ?? "", autocomplete: "off" });
  const threshold = number({ min: 1, max: 100, required: true }, of?.threshold);
  const forSeconds = number({ min: 60, max: 3_600 }, of?.for_seconds);
  forSeconds.placeholder = "300";
  const field = (label: string, input: HTMLElement) =>
    h("label", { class: "field" }, h("span", {}, label), input);
  const choose = (chosen: string) => {
    metric = chosen;
    const isMeasured = metrics.find((one) => one.name === chosen)?.isMeasured ?? false;
    threshold.disabled = !isMeasured;
    forSeconds.disabled = !isMeasured;
  };
  const options = metrics.map((one) => [one.name, words(one.name)] as const);
  const button = h("button", { type: "button" }, "Remove");
  const element = h(
    "fieldset",
    {},
    h("legend", {}, "Rule"),
    choice("Watches", options, metric, choose),
    field("Name", name),
    field("From percent", threshold),
    field("For seconds", forSeconds),
    button,
  );
  choose(metric);
  const made: Row = {
    element,
    read: () => ({ metric, name: name.value, threshold: threshold.value, forSeconds: forSeconds.value }),
  };
  button.addEventListener("click", () => remove(made));
  return made;
}

/** Changes the rules. @param changed called once they are */
export function alertForm(
  { api, signal, project }: ProjectContext,
  of: readonly Alert[],
  {
    path,
    load,
    outcome: to,
    changed,
  }: { path: string; load: () => Promise<Alert[]>; outcome: Outcome; changed: () => Promise<void> },
): HTMLElement {
  const metrics = alertMetrics(project.type_project);
  const rows = new Set<Row>();
  const place = h("div", { class: "change" });
  const add = h("button", { type: "button", "data-key": "add rule" }, "Add a rule");
  const append = (rule?: AlertRule) => {
    const made = row(metrics, rule, (one) => {
      rows.delete(one);
      one.element.remove();
      add.disabled = false;
      add.focus();
    });
    rows.add(made);
    place.append(made.element);
    add.disabled = rows.size >= MOST;
    return made;
  };
  of.forEach((rule) => void append(rule));
  add.addEventListener("click", () => append().element.querySelector("select")?.focus());
  const run = async () => {
    const now = [...rows].map((one) => ruleOf(one.read(), metrics));
    const rules = mergedRules(of, now, await load());
    if (rules === undefined) {
      return "Nothing is different.";
    }
    await api.change("PUT", path, { alerts: rules }, signal);
    await changed();
    return "Saved.";
  };
  const summary = h("summary", { "data-key": "change" }, "Change");
  return h("details", {}, summary, changeForm("Save", { run, outcome: to, signal }, place, add));
}

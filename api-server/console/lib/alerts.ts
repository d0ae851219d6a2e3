import type { AlertRule } from "./shapes.ts";

/** Rules of a project's alerts: what a form says of them, and what is sent. Pure. */

/** What a rule can watch. */
export interface AlertMetric {
  name: string;
  /** In percent, with a threshold and a time. */
  isMeasured: boolean;
}

/** The metrics that projects of a type have, of those that the page names. */
export function metricsOf(type: string, content: string): AlertMetric[] {
  return content
    .split(" ")
    .map((one) => one.split(":"))
    .filter(([name, , types = ""]) => name && types.split(",").includes(type))
    .map(([name = "", unit]) => ({ name, isMeasured: unit === "percent" }));
}

/** What the form has of one rule. */
export interface RuleForm {
  metric: string;
  /** Empty: that of the metric. */
  name: string;
  threshold: string;
  /** Empty: what the API takes without it. */
  forSeconds: string;
}

/** The rule that a form describes. */
export function ruleOf(form: RuleForm, metrics: readonly AlertMetric[]): AlertRule {
  const { metric, threshold, forSeconds } = form;
  const isMeasured = metrics.find(({ name }) => name === metric)?.isMeasured ?? false;
  return {
    name: form.name.trim() || metric,
    metric,
    ...(isMeasured ? { threshold: Number(threshold) } : {}),
    ...(isMeasured && forSeconds !== "" ? { for_seconds: Number(forSeconds) } : {}),
  };
}

/**
 * All rules as they are to be; undefined when the form changes none. What others have added, changed or removed since the form was
 * made stays as they have left it, unless the form changes the same rule.
 * @param made the rules from which the form was made
 * @param now the rules of the form
 * @param current the rules that the project has
 */
export function mergedRules(
  made: readonly AlertRule[],
  now: readonly AlertRule[],
  current: readonly AlertRule[],
): AlertRule[] | undefined {
  const wanted = byName(now);
  if (wanted.size < now.length) {
    // Two of one name: the API says so.
    return now.map(plain);
  }
  const before = byName(made);
  const isChanged = (rule: AlertRule) => !isSame(rule, before.get(rule.name));
  const isRemoved = ({ name }: AlertRule) => before.has(name) && !wanted.has(name);
  if (!now.some(isChanged) && !made.some(isRemoved)) {
    return undefined;
  }
  const kept = current.filter((rule) => !isRemoved(rule));
  const replaced = kept.map((rule) => {
    const other = wanted.get(rule.name);
    return other !== undefined && isChanged(other) ? other : rule;
  });
  const names = byName(kept);
  const added = now.filter((rule) => isChanged(rule) && !names.has(rule.name));
  return [...replaced, ...added].map(plain);
}

const byName = (rules: readonly AlertRule[]) => new Map(rules.map((rule) => [rule.name, rule]));

/** A rule without its state. */
function plain({ name, metric, threshold, for_seconds }: AlertRule): AlertRule {
  return {
    name,
    metric,
    ...(threshold === undefined ? {} : { threshold }),
    ...(for_seconds === undefined ? {} : { for_seconds }),
  };
}

const isSame = (one: AlertRule, other: AlertRule | undefined): boolean =>
  other !== undefined && JSON.stringify(plain(one)) === JSON.stringify(plain(other));

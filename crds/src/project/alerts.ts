/** Rules of a project's alerts: what is watched, from which value on, and for how long. */

import { z } from "zod";
import { integer, matching } from "../fields.ts";
import { mapOf, type Rule, rule, withRules } from "../rule.ts";
import type { ProjectType } from "./types.ts";

/** What is measured, in percent: of an instance's limit, or of requests. */
export const measuredAlertMetrics = ["cpu", "memory", "volume", "error_rate"] as const;
/** What a rule can watch. */
export const alertMetrics = [...measuredAlertMetrics, "failed_deployment", "missed_run"] as const;
export type AlertMetric = (typeof alertMetrics)[number];
export type MeasuredAlertMetric = (typeof measuredAlertMetrics)[number];

/** Most rules of one project. */
export const ALERTS_MAX = 10;
/** Least and most seconds for which a value must have been over its threshold. */
export const ALERT_FOR_SECONDS = { min: 60, max: 3_600 } as const;
/** Of a rule that does not say for how long. */
const DEFAULT_FOR_SECONDS = 300;

/** Whether it is a percentage with a threshold. */
export function isMeasured(metric: AlertMetric): metric is MeasuredAlertMetric {
  return (measuredAlertMetrics as readonly AlertMetric[]).includes(metric);
}

const databases: readonly ProjectType[] = ["postgresql", "mariadb", "clickhouse", "valkey"];

/** The types of project that have what a rule watches. */
export const typesOfAlertMetric: Readonly<Record<AlertMetric, readonly ProjectType[]>> = {
  cpu: ["http", "worker", ...databases],
  memory: ["http", "worker", ...databases],
  volume: ["http", "worker", ...databases],
  error_rate: ["http"],
  failed_deployment: ["http", "worker"],
  missed_run: ["job"],
};

export const alertName = matching(
  /^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$/,
  "must be lowercase letters, digits, hyphens and underscores",
  40,
  "Name of the rule, once in the project.",
).min(1);

/** A rule without what spans its fields. */
export const alertRuleFields = z
  .strictObject({
    name: alertName,
    metric: z
      .enum(alertMetrics)
      .describe(
        "What is watched: CPU, memory and volume of the instance that uses most, in percent of its limit; requests answered 5xx, in percent; a last deployment that has failed; a last occurrence of the schedule that was missed.",
      ),
    threshold: integer(
      1,
      100,
      "Percent from which on the alert fires. Of cpu, memory, volume and error_rate, and required there.",
    ).optional(),
    forSeconds: integer(
      ALERT_FOR_SECONDS.min,
      ALERT_FOR_SECONDS.max,
      `Seconds for which the value must have been there, or below for the alert to end; ${DEFAULT_FOR_SECONDS} unless given, and none of failed_deployment and missed_run.`,
    ).optional(),
  })
  .describe("One rule.");
export type AlertRule = z.output<typeof alertRuleFields>;

const MEASURED = `self.metric in [${measuredAlertMetrics.map((one) => `'${one}'`).join(", ")}]`;

const alertRule = withRules(alertRuleFields, [
  rule({
    cel: `has(self.threshold) == (${MEASURED})`,
    check: ({ metric, threshold }) => (threshold !== undefined) === isMeasured(metric),
    message: `{threshold} is required for ${measuredAlertMetrics.join(", ")}, and not allowed for others`,
    fields: ["threshold", "metric"],
  }),
  rule({
    cel: `!has(self.forSeconds) || ${MEASURED}`,
    check: ({ metric, forSeconds }) => forSeconds === undefined || isMeasured(metric),
    message: `{forSeconds} is only of ${measuredAlertMetrics.join(", ")}`,
    fields: ["forSeconds", "metric"],
  }),
]);

export const alertRules = mapOf(z.array(alertRule).max(ALERTS_MAX), "name").describe(
  "Alerts: webhooks of the organization are sent what they find.",
);

/** For how long a rule's value must be over its threshold, or below. */
export const alertForSeconds = ({ metric, forSeconds }: AlertRule): number =>
  isMeasured(metric) ? (forSeconds ?? DEFAULT_FOR_SECONDS) : 0;

interface WithAlerts {
  readonly type: ProjectType;
  readonly alerts?: readonly AlertRule[];
}

/** A rule watches what the project's type has. */
export const alertsOfType: readonly Rule<WithAlerts>[] = alertMetrics.map((metric) => {
  const types = typesOfAlertMetric[metric];
  return {
    cel: `!has(self.alerts) || self.type in [${types.map((type) => `'${type}'`).join(", ")}] || !self.alerts.exists(one, one.metric == '${metric}')`,
    check: ({ type, alerts = [] }) => types.includes(type) || !alerts.some((one) => one.metric === metric),
    message: `{alerts} can watch ${metric} only of projects of type ${types.join(", ")}`,
    fields: ["alerts", "type"],
  };
});

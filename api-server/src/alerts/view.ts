import { type AlertRule, alertForSeconds, alertMetrics, isMeasured } from "@slipway/crds";
import type { RecordedAlert } from "@slipway/ledger";
import { z } from "zod";

/** A rule of a project's alerts as `/v1` shows it, with its state. */
export const alertSchema = z.object({
  name: z.string(),
  metric: z.enum(alertMetrics),
  threshold: z.int().optional().describe("Percent."),
  for_seconds: z.int().optional(),
  state: z
    .enum(["ok", "firing", "no_data"])
    .describe("no_data: nothing has been known yet, or nothing is known any more."),
  since: z.string().optional().describe("Since when; absent while nothing has been known yet."),
  value: z
    .number()
    .optional()
    .describe(
      "What was measured when the state began, in percent. What is measured now is in `GET metrics`.",
    ),
});

/** The rules with what is recorded of them. Pure. */
export function alertViews(
  rules: readonly AlertRule[] = [],
  recorded: readonly RecordedAlert[] = [],
): z.output<typeof alertSchema>[] {
  return rules.map((rule) => {
    const { name, metric, threshold } = rule;
    const found = recorded.find((one) => one.name === name && one.metric === metric);
    return {
      name,
      metric,
      ...(threshold === undefined ? {} : { threshold }),
      ...(isMeasured(metric) ? { for_seconds: alertForSeconds(rule) } : {}),
      state: found?.state ?? "no_data",
      ...(found === undefined ? {} : { since: found.since.toISOString() }),
      ...(found === undefined || found.value === null ? {} : { value: found.value }),
    };
  });
}

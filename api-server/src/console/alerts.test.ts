import { readFileSync } from "node:fs";
import {
  ALERT_FOR_SECONDS,
  ALERTS_MAX,
  alertMetrics,
  isMeasured,
  projectTypes,
  putAlertsBody,
  typesOfAlertMetric,
} from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { mergedRules, metricsOf, ruleOf } from "../../console/lib/alerts.ts";
import { consoleFiles } from "./routes.ts";

const content = /<meta name="alert-metrics" content="([^"]*)">/.exec(
  consoleFiles().page.content.toString(),
)?.[1];
const source = readFileSync(new URL("../../console/views/alert-form.ts", import.meta.url), "utf8");

describe("the form of alerts", () => {
  it.each(projectTypes)("offers the API's metrics of type %s, which the page names", (type) => {
    expect(metricsOf(type, content ?? "")).toEqual(
      alertMetrics
        .filter((metric) => typesOfAlertMetric[metric].includes(type))
        .map((name) => ({ name, isMeasured: isMeasured(name) })),
    );
    expect(source).toContain('meta[name="alert-metrics"]');
  });

  it("has the API's bounds", () => {
    expect(source).toContain(`const MOST = ${ALERTS_MAX};`);
    const text = source.replaceAll("_", "");
    expect(text).toContain(`min: ${ALERT_FOR_SECONDS.min}, max: ${ALERT_FOR_SECONDS.max}`);
  });

  it("becomes what the API takes", () => {
    const metrics = metricsOf("http", content ?? "");
    const rules = [
      ruleOf({ metric: "memory", name: " ", threshold: "90", forSeconds: "" }, metrics),
      ruleOf({ metric: "error_rate", name: " errors ", threshold: "5", forSeconds: "120" }, metrics),
      // Left from another choice of the metric.
      ruleOf({ metric: "failed_deployment", name: "", threshold: "5", forSeconds: "60" }, metrics),
    ];
    expect(putAlertsBody.parse({ alerts: rules }).alerts).toEqual([
      { name: "memory", metric: "memory", threshold: 90 },
      { name: "errors", metric: "error_rate", threshold: 5, for_seconds: 120 },
      { name: "failed_deployment", metric: "failed_deployment" },
    ]);
  });
});

describe("rules that are sent", () => {
  const cpu = { name: "cpu", metric: "cpu", threshold: 90, for_seconds: 300 };
  const memory = { name: "memory", metric: "memory", threshold: 90, for_seconds: 300 };
  const failed = { name: "failed", metric: "failed_deployment" };
  const shown = { ...cpu, state: "firing", since: "2026-11-21T12:00:00Z", value: 96 };

  it("are none where the form changes none, whatever others have changed", () => {
    expect(mergedRules([shown, failed], [failed, cpu], [memory])).toBeUndefined();
  });

  it("have no state", () => {
    expect(mergedRules([shown], [cpu, failed], [shown])).toEqual([cpu, failed]);
  });

  it("are changed, added and removed as in the form", () => {
    const now = [{ ...cpu, threshold: 80 }, memory];
    expect(mergedRules([cpu, failed], now, [cpu, failed])).toEqual(now);
    expect(mergedRules([cpu], [], [cpu])).toEqual([]);
  });

  it("keep what others have added, changed and removed since", () => {
    const byOthers = { ...cpu, threshold: 70 };
    expect(mergedRules([cpu, failed], [cpu, failed, memory], [byOthers])).toEqual([byOthers, memory]);
    expect(mergedRules([cpu], [{ ...cpu, threshold: 80 }], [memory])).toEqual([
      memory,
      { ...cpu, threshold: 80 },
    ]);
    expect(mergedRules([failed], [], [failed, cpu])).toEqual([cpu]);
  });

  it("are refused by the API where two have one name, and none of them is lost before", () => {
    const now = [cpu, { ...memory, name: "cpu" }];
    expect(mergedRules([], now, [])).toEqual(now);
  });
});

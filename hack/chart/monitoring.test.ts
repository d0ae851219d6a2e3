/** Alerts and dashboards of the chart ask for metrics that the processes have, and every alert has its entry in the runbook. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { missedReasons } from "@slipway/crds";
import { beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { root } from "../lib/paths.ts";
import { processRegistries } from "../releases/registries.ts";
import { chartDir } from "./render.ts";

const files = join(chartDir, "files");
const read = (path: string): string => readFileSync(join(files, path), "utf8");

interface Rule {
  alert: string;
  expr: string;
  annotations: { runbook_url: string };
}
const rules = readdirSync(join(files, "alerts")).flatMap((file) =>
  (parse(read(`alerts/${file}`)) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules),
);
const panels = readdirSync(join(files, "dashboards")).flatMap(
  (file) =>
    (
      JSON.parse(read(`dashboards/${file}`)) as {
        panels: { id: number; title: string; targets: { expr: string }[] }[];
      }
    ).panels,
);
const queries: [string, string][] = [
  ...rules.map(({ alert, expr }): [string, string] => [alert, expr]),
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }): [string, string] => [title, expr])),
];

/** Labels by name of metric, as a scrape shows them. */
let served: Map<string, Set<string>>;

beforeAll(async () => {
  served = new Map();
  const text = (await Promise.all(processRegistries().map((registry) => registry.metrics()))).join("\n");
  // Those without a value yet, too.
  for (const [, name = "", type] of text.matchAll(/^# TYPE ([a-z_]+) (\w+)$/gm)) {
    const suffixes = type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    for (const suffix of suffixes) {
      served.set(`${name}${suffix}`, new Set());
    }
  }
  for (const [, name = "", labels = ""] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm)) {
    const known = served.get(name) ?? new Set<string>();
    for (const [label] of labels.matchAll(/[a-z_]+="[^"]*"/g)) {
      known.add(label);
    }
    served.set(name, known);
  }
});

test.each(queries)("%s asks for what is there: %s", (_, expr) => {
  const selected = [
    ...expr.matchAll(
      /\b((?:slipway|leader|workqueue|controller_runtime|rest_client)_[a-z_]+)(?:\{([^}]*)\})?/g,
    ),
  ];
  expect(selected).not.toHaveLength(0);
  for (const [, name = "", selector = ""] of selected) {
    expect([...served.keys()]).toContain(name);
    const known = [...(served.get(name) ?? [])];
    for (const [, label, operator, value = ""] of selector.matchAll(/([a-z_]+)(=~?)"([^"]+)"/g)) {
      if (operator === "=") {
        expect(known).toContain(`${label}="${value}"`);
        continue;
      }
      for (const one of value.split("|")) {
        const pattern = new RegExp(`^${label}="${one}"$`);
        expect([pattern, known.some((labelled) => pattern.test(labelled))]).toEqual([pattern, true]);
      }
    }
  }
});

test("one call that is not signed sets off no alert: what increased by one is extrapolated to a little more", () => {
  const expr = rules.find(({ alert }) => alert === "SlipwayPaymentsUnsigned")?.expr ?? "";
  const [, threshold] = /outcome="unsigned"\}\[1h\]\)\) > (\S+)/.exec(expr) ?? [];
  expect(Number(threshold)).toBeGreaterThan(1.1);
  expect(Number(threshold)).toBeLessThan(2);
});

test("every reason of a missed occurrence but Overlap is in exactly one alert", () => {
  const selectors = rules.flatMap(({ expr }) => [
    ...expr.matchAll(/slipway_job_missed_total\{reason(=~|!~)"([^"]+)"/g),
  ]);
  const alerted = missedReasons.map((reason) =>
    selectors.filter(
      ([, operator, names = ""]) => new RegExp(`^(${names})$`).test(reason) === (operator === "=~"),
    ),
  );
  expect(missedReasons.map((reason, at) => [reason, alerted[at]?.length])).toEqual(
    missedReasons.map((reason) => [reason, reason === "Overlap" ? 0 : 1]),
  );
});

test("what alerts ask of the pipeline of requests they ask of those of logs and metrics, too", () => {
  const asked = rules.flatMap(({ expr }) => [...expr.matchAll(/slipway_collector_[a-z_]+(?:\{[^}]*\})?/g)]);
  const all = new Set(asked.map(([selector]) => selector));
  const ofRequests = [...all].filter((selector) => !/^slipway_collector_(logs|metrics)_/.test(selector));
  // Whether there is a collector at all, one pipeline says.
  const paired = ofRequests.filter((selector) => selector !== "slipway_collector_lines_total");
  expect(paired.length).toBeGreaterThan(6);
  expect([...all]).toEqual(
    expect.arrayContaining(
      paired.map((selector) => selector.replace("slipway_collector_", "slipway_collector_logs_")),
    ),
  );
  // Samples are of now: no file of them can be gone.
  const ofMetrics = paired.filter((selector) => !selector.includes("_gaps_"));
  // A kubelet that cannot be read has an alert of its own.
  const ofStep = (selector: string) =>
    selector.includes('"read|write"')
      ? ["read", "write"].map((step) => selector.replace('=~"read|write"', `="${step}"`))
      : [selector];
  expect([...all]).toEqual(
    expect.arrayContaining(
      ofMetrics
        .flatMap(ofStep)
        .map((selector) => selector.replace("slipway_collector_", "slipway_collector_metrics_")),
    ),
  );
});

test("no two alerts share a name, and each says how bad it is", () => {
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  expect(rules).toEqual(
    rules.map(() =>
      expect.objectContaining({ labels: { severity: expect.stringMatching(/^(critical|warning|info)$/) } }),
    ),
  );
});

test("every alert has its heading in the runbook, and every heading its alert", () => {
  const headings = [
    ...readFileSync(join(root, "docs/operations/alerts.md"), "utf8").matchAll(/^### (\w+)$/gm),
  ];
  expect(headings.map(([, name]) => name).sort()).toEqual(rules.map(({ alert }) => alert).sort());
  // As pages of Markdown make anchors of headings.
  expect(rules.map(({ annotations }) => annotations.runbook_url)).toEqual(
    rules.map(({ alert }) => `RUNBOOKS#${alert.toLowerCase()}`),
  );
});

test("no two panels of a dashboard lie upon each other", () => {
  for (const file of readdirSync(join(files, "dashboards"))) {
    const dashboard = JSON.parse(read(`dashboards/${file}`)) as {
      uid: string;
      panels: { id: number; gridPos: { x: number; y: number; w: number; h: number } }[];
    };
    expect(dashboard.uid).toMatch(/^slipway-/);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)}/${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  }
});

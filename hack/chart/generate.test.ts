import { expect, test } from "vitest";
import { parse } from "yaml";
import { generateChartFiles, keptByHelm, renderRules } from "./generate.ts";

test("every definition and every role is in the chart", () => {
  const files = generateChartFiles();
  expect([...files.keys()].filter((path) => path.includes("/rbac/"))).toHaveLength(29);
  const crds = [...files].filter(([path]) => path.includes("/crds/")).map(([, text]) => parse(text));
  expect(crds.length).toBeGreaterThanOrEqual(4);
  for (const crd of crds) {
    expect(crd.kind).toBe("CustomResourceDefinition");
    expect(crd.metadata.annotations).toEqual({ "helm.sh/resource-policy": "keep" });
  }
});

test("a wildcard is refused, in a group, a resource or a verb", () => {
  const rule = { apiGroups: [""], resources: ["pods"], verbs: ["get"] };
  for (const wild of [{ apiGroups: ["*"] }, { resources: ["pods/*"] }, { verbs: ["*"] }]) {
    expect(() => renderRules([{ ...rule, ...wild }])).toThrow("a rule names");
  }
  expect(parse(renderRules([rule]))).toEqual([rule]);
});

test("a definition with other metadata is refused rather than left deletable", () => {
  const text = "kind: CustomResourceDefinition\nmetadata:\n  name: a.b\n  labels: {}\nspec: {}\n";
  expect(() => keptByHelm(text)).toThrow("not a name alone");
});

import { expect, test } from "vitest";
import { clusterRules, namespaceRules } from "./rules.ts";

test("no rule has a wildcard, and none reaches what the operator must not touch", () => {
  for (const { apiGroups, resources, verbs } of [...clusterRules, ...namespaceRules]) {
    expect([...apiGroups, ...resources, ...verbs]).not.toContain("*");
    expect(verbs).not.toContain("deletecollection");
    expect(verbs).not.toContain("escalate");
    // Nodes are read, to know whose word counts.
    if (resources.includes("nodes")) {
      expect(verbs.toSorted()).toEqual(["get", "list", "watch"]);
    }
  }
  expect(clusterRules.find(({ resources }) => resources.includes("namespaces"))?.verbs).not.toContain(
    "delete",
  );
});

test("each resource is listed once, in a stable order", () => {
  const keys = clusterRules.map(({ apiGroups, resources }) => `${apiGroups.join()}/${resources.join()}`);
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys).toEqual(keys.toSorted());
});

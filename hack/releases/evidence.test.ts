import { expect, test } from "vitest";
import type { Contract } from "./contract.ts";
import { evidencePage } from "./evidence.ts";
import { countFiles } from "./evidence-tests.ts";

const report = JSON.stringify({
  testResults: [
    {
      name: "/there/test/chaos/ledger.chaos.test.ts",
      assertionResults: [{ status: "passed" }, { status: "failed" }, { status: "pending" }],
    },
    {
      name: "/there/test/e2e/organizations-isolation.e2e.test.ts",
      assertionResults: [{ status: "pending" }],
    },
  ],
});

const contract: Contract = {
  api: { paths: { "/v1/project": { get: { responses: {} }, post: { responses: {} } } }, components: {} },
  codes: ["FORBIDDEN"],
  resources: { "projects.slipway.dev": [] },
  podTemplates: {},
  metrics: { slipway_up: { type: "gauge", labels: [] } },
};

test("each section has what its run left, and says where nothing was measured", () => {
  const page = evidencePage({
    version: "0.2.0",
    commit: "abcdef12+",
    tests: {
      commit: "abcdef12",
      isWhole: true,
      stages: [
        { name: "unit", about: "unit tests", seconds: 80, passed: 10, failed: 0, skipped: 0 },
        { name: "contract", about: "the API", seconds: 1, passed: 90, failed: 0, skipped: 0 },
        { name: "e2e", about: "end to end", seconds: 800, passed: 5, failed: 1, skipped: 2 },
      ],
    },
    files: countFiles([report], "/there"),
    figures: [
      {
        topic: "failover",
        name: "PostgreSQL: killed",
        commit: "abcdef12",
        values: { "rows acknowledged": 1234, ms: 15.678 },
      },
    ],
    promises: 312,
    contract,
    breaks: { "0.1.0": [], "0.0.9": ["the metric slipway_down is gone"] },
  });
  expect(page).toContain("`hack/test.sh` on commit abcdef12: 105 passed, 1 failed, 2 skipped.");
  expect(page).toContain("| e2e | end to end | 5 | 1 | 2 | 800 |");
  expect(page).toContain("| PostgreSQL: killed | 1,234 rows acknowledged, 15.68 ms | abcdef12 |");
  expect(page).toContain(
    "1 passed, 1 failed.\n\n| tests | passed | failed | skipped |\n| --- | --- | --- | --- |\n| `test/chaos/ledger.chaos.test.ts` | 1 | 1 | 1 |",
  );
  expect(page).toContain("## Isolation\n\nNot measured for this release.");
  expect(page).toContain("an operation each: 90 passed, 0 failed. 312 promises");
  expect(page).toContain("## Upgrade, and back\n\nNot measured for this release.");
  expect(page).toContain("Commit abcdef12+: 2 operations, 1 failure codes, 1 kinds of resources, 1 metrics.");
  expect(page).toContain("- Nothing of 0.1.0 is broken.");
  expect(page).toContain("- Of 0.0.9 is broken:\n  - the metric slipway_down is gone");
});

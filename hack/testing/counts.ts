/** How many tests a stage ran, by outcome. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const none: Counts = { passed: 0, failed: 0, skipped: 0 };

export const add = (a: Counts, b: Counts): Counts => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
});

/** The part of Vitest's JSON report that is read here. */
interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly { readonly status: string; readonly assertionResults: readonly unknown[] }[];
}

/**
 * Counts from Vitest's JSON report. A file that failed before its first test (an import error, a broken hook) has
 * no failed test of its own and counts as one failure.
 */
export function vitestCounts(json: string): Counts {
  const report = JSON.parse(json) as VitestReport;
  const brokenFiles = report.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.length === 0,
  ).length;
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + brokenFiles,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

interface GoEvent {
  readonly Action: string;
  readonly Test?: string;
}

/**
 * Counts from `go test -json`: top-level tests, and a package that failed without naming a test (it did not compile)
 * as one failure.
 */
export function goCounts(jsonLines: string): Counts {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  let failedPackages = 0;
  for (const line of jsonLines.split("\n")) {
    if (!line.startsWith("{")) {
      continue;
    }
    const event = JSON.parse(line) as GoEvent;
    if (event.Test === undefined) {
      if (event.Action === "fail") {
        failedPackages += 1;
      }
      continue;
    }
    if (event.Test.includes("/")) {
      continue;
    }
    if (event.Action === "pass") {
      counts.passed += 1;
    }
    if (event.Action === "fail") {
      counts.failed += 1;
    }
    if (event.Action === "skip") {
      counts.skipped += 1;
    }
  }
  return counts.failed === 0 ? { ...counts, failed: failedPackages } : counts;
}

/**
 * Counts from a JUnit report, by the totals of its root. A test that broke counts as failed.
 * @throws Error when the text is no such report
 */
export function junitCounts(xml: string): Counts {
  const root = /<testsuites\b[^>]*>/.exec(xml)?.[0];
  if (root === undefined) {
    throw new Error("this is no JUnit report");
  }
  const total = (name: string): number => {
    const value = new RegExp(` ${name}="([0-9]+)"`).exec(root)?.[1];
    if (value === undefined) {
      throw new Error(`the JUnit report has no ${name}`);
    }
    return Number(value);
  };
  const failed = total("failures") + total("errors");
  const skipped = total("skipped");
  return { passed: total("tests") - failed - skipped, failed, skipped };
}

/** The closing line: `N passed, N failed`, with `, N skipped` only where something was. */
export const closingLine = ({ passed, failed, skipped }: Counts): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;

import { expect, test } from "vitest";
import { add, closingLine, goCounts, junitCounts, none, vitestCounts } from "./counts.ts";

test("a test file that broke before its first test is a failure", () => {
  const report = {
    numPassedTests: 3,
    numFailedTests: 1,
    numPendingTests: 1,
    numTodoTests: 0,
    testResults: [
      { status: "failed", assertionResults: [] },
      { status: "failed", assertionResults: [{}] },
      { status: "passed", assertionResults: [{}, {}, {}] },
    ],
  };
  expect(vitestCounts(JSON.stringify(report))).toEqual({ passed: 3, failed: 2, skipped: 1 });
});

test("Go subtests are not counted beside their parent", () => {
  const events = [
    { Action: "run", Test: "TestA" },
    { Action: "pass", Test: "TestA/one" },
    { Action: "pass", Test: "TestA" },
    { Action: "skip", Test: "TestB" },
    { Action: "fail", Test: "TestC" },
    { Action: "fail" },
  ];
  const lines = events.map((event) => JSON.stringify(event)).join("\n");
  expect(goCounts(`not json\n${lines}\n`)).toEqual({ passed: 1, failed: 1, skipped: 1 });
});

test("a Go package that does not compile is a failure", () => {
  expect(goCounts('{"Action":"fail","Package":"x"}')).toEqual({ passed: 0, failed: 1, skipped: 0 });
});

test("a JUnit report's broken tests are failures", () => {
  const xml =
    '<?xml version="1.0"?>\n<testsuites errors="1" failures="2" skipped="3" tests="26" time="8.4"><testsuite/>';
  expect(junitCounts(xml)).toEqual({ passed: 20, failed: 3, skipped: 3 });
  expect(() => junitCounts("")).toThrow(/no JUnit report/);
  expect(() => junitCounts('<testsuites tests="1">')).toThrow(/no failures/);
});

test("the closing line names skipped tests only where there are some", () => {
  expect(closingLine(add(none, { passed: 2, failed: 0, skipped: 0 }))).toBe("2 passed, 0 failed");
  expect(closingLine({ passed: 2, failed: 1, skipped: 4 })).toBe("2 passed, 1 failed, 4 skipped");
});

import { expect, test } from "vitest";
import { failedGoOutput, failedTests, tail } from "./failures.ts";

test("the end of an output is printed in few lines of bounded length", () => {
  const lines = Array.from({ length: 100 }, (_, index) => `line ${index}`);
  const printed = tail(`${lines.join("\n")}\n\u001b[31m${"x".repeat(1_000)}\u001b[39m\n\n`);
  expect(printed).toHaveLength(40);
  expect(printed[0]).toBe("line 61");
  expect(printed.at(-1)).toBe(`${"x".repeat(299)}…`);
});

test("failed tests are printed with file, name and the whole message without its stack", () => {
  const passed = { status: "passed", fullName: "fine" };
  const failed = {
    status: "failed",
    fullName: "a run ends",
    failureMessages: [
      "Error: two things are wrong\none\n\u001b[31mtwo\u001b[39m\n    at f (x.ts:1:2)\n    at g",
    ],
  };
  const report = {
    testResults: [
      { name: "/repo/a.test.ts", status: "failed", assertionResults: [passed, failed] },
      { name: "/repo/b.test.ts", status: "passed", assertionResults: [passed] },
      { name: "/repo/c.test.ts", status: "failed", message: "no such module\n", assertionResults: [] },
    ],
  };
  expect(failedTests(JSON.stringify(report), "/repo")).toEqual([
    "a.test.ts › a run ends: Error: two things are wrong\n  one\n  two",
    "c.test.ts: no such module",
  ]);
});

test("the message of a failed test is cut at a length", () => {
  const failureMessages = [`Error: ${"x".repeat(5_000)}`];
  const failed = { status: "failed", fullName: "fails", failureMessages };
  const report = {
    testResults: [{ name: "/repo/a.test.ts", status: "failed", assertionResults: [failed] }],
  };
  const [printed = ""] = failedTests(JSON.stringify(report), "/repo");
  expect(printed).toHaveLength("a.test.ts › fails: ".length + 2_000);
  expect(printed).toMatch(/x…$/);
});

test("of many failed tests the first are printed, and how many there are", () => {
  const assertionResults = Array.from({ length: 50 }, (_, index) => ({
    status: "failed",
    fullName: `test ${index}`,
  }));
  const report = { testResults: [{ name: "/repo/a.test.ts", status: "failed", assertionResults }] };
  const printed = failedTests(JSON.stringify(report), "/repo");
  expect(printed).toHaveLength(41);
  expect(printed.at(-1)).toBe("and 10 more");
});

test("of Go's tests only the failed ones are printed", () => {
  const events = [
    { Action: "output", Package: "p", Test: "TestGood", Output: "good\n" },
    { Action: "pass", Package: "p", Test: "TestGood" },
    { Action: "output", Package: "p", Test: "TestBad", Output: "    bad_test.go:7: broken\n" },
    { Action: "fail", Package: "p", Test: "TestBad" },
    { Action: "output", Package: "p", Output: "FAIL\tp\t0.1s\n" },
    { Action: "fail", Package: "p" },
    { Action: "output", Package: "q", Output: "ok\n" },
    { Action: "pass", Package: "q" },
  ];
  const lines = events.map((event) => JSON.stringify(event)).join("\n");
  expect(failedGoOutput(`${lines}\n`)).toBe("    bad_test.go:7: broken\nFAIL\tp\t0.1s\n");
});

import { expect, test } from "vitest";
import { expectNoViolations, ObservationLog } from "./observation-log.ts";

test("passes without a violation", () => {
  expect(() => expectNoViolations([])).not.toThrow();
});

test("reports every violation in full, and what was observed of each subject once", () => {
  const log = ["10:00:00.000 pod a-1-x: not started, finalizers []"];
  const wrong = [
    { rule: "one pod per run", subject: "a-1", detail: "a-1-x, a-1-y", log },
    { rule: "never two concurrently", subject: "a", detail: "a-1 and a-1", log: [] },
    { rule: "no run lost", subject: "a-1", detail: "its container started", log },
  ];
  expect(() => expectNoViolations(wrong)).toThrow(
    [
      "one pod per run: a-1: a-1-x, a-1-y",
      "never two concurrently: a: a-1 and a-1",
      "no run lost: a-1: its container started",
      "what was observed of a-1:",
      ...log,
      "what was observed of a:",
    ].join("\n"),
  );
});

test("the log has a line for each new state of an object", () => {
  const log = new ObservationLog();
  for (const line of ["pod a: x", "Job: y", "pod a: x", "pod b: x", "Job: z", "pod a: y"]) {
    log.add("a-1", line);
  }
  const lines = log.of("a-1").map((line) => line.replace(/^[0-9:.]{12} /, ""));
  expect(lines).toEqual(["pod a: x", "Job: y", "pod b: x", "Job: z", "pod a: y"]);
  expect(log.of("a-2")).toEqual([]);
});

import { expect, test } from "vitest";
import { Stories } from "./observation-log.ts";
import { expectNothingWrong } from "./report.ts";

test("passes when nothing is wrong", () => {
  expect(() => expectNothingWrong([])).not.toThrow();
});

test("tells every violation in full, and what was seen of each subject once", () => {
  const story = ["10:00:00.000 pod a-1-x: not started, held by []"];
  const wrong = [
    { rule: "one pod per run", subject: "a-1", detail: "a-1-x, a-1-y", story },
    { rule: "never two at once", subject: "a", detail: "a-1 and a-1", story: [] },
    { rule: "no run lost", subject: "a-1", detail: "its container started", story },
  ];
  expect(() => expectNothingWrong(wrong)).toThrow(
    [
      "one pod per run: a-1: a-1-x, a-1-y",
      "never two at once: a: a-1 and a-1",
      "no run lost: a-1: its container started",
      "what was seen of a-1:",
      ...story,
      "what was seen of a:",
    ].join("\n"),
  );
});

test("a story has a line for each word of an object that is new", () => {
  const stories = new Stories();
  for (const line of ["pod a: x", "Job: y", "pod a: x", "pod b: x", "Job: z", "pod a: y"]) {
    stories.add("a-1", line);
  }
  const told = stories.of("a-1").map((line) => line.replace(/^[0-9:.]{12} /, ""));
  expect(told).toEqual(["pod a: x", "Job: y", "pod b: x", "Job: z", "pod a: y"]);
  expect(stories.of("a-2")).toEqual([]);
});

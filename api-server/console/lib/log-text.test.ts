import { describe, expect, it } from "vitest";
import { newLines, visible } from "./log-text.ts";

it.each([
  ["plain, tabs\tand 日本語", "plain, tabs\tand 日本語"],
  ["<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"],
  ["\u001b[31mred\u001b[0m and \u001b[1;38;5;196mbold\u001b[m", "red and bold"],
  ["\u001b]0;title\u0007text \u001b]8;;http://evil\u001b\\link\u001b]8;;\u001b\\", "text link"],
  ["ends\r", "ends"],
  ["over\rwritten", "over\ufffdwritten"],
  ["bell\u0007 back\u0008 nul\u0000", "bell\ufffd back\ufffd nul\ufffd"],
  // Characters that reverse the writing direction show "txt.exe" as "exe.txt".
  ["\u202etxt.exe\u2066", "\ufffdtxt.exe\ufffd"],
  ["\u001b", "\ufffd"],
])("%j is shown as %j", (line, shown) => {
  expect(visible(line)).toBe(shown);
});

it("handles hostile lines in little time", () => {
  const begin = performance.now();
  visible("\u001b]".repeat(100_000));
  visible("\u001b[".repeat(100_000));
  expect(performance.now() - begin).toBeLessThan(5_000);
});

describe("the new lines of a log", () => {
  it.each([
    [[], ["a"], ["a"]],
    [["a"], ["a"], []],
    [["a", "b"], ["a", "b", "c"], ["c"]],
    // The window has moved on.
    [["a", "b", "c"], ["b", "c", "d"], ["d"]],
    [["a", "a"], ["a", "a", "a"], ["a"]],
    [
      ["a", "b"],
      ["c", "d"],
      ["c", "d"],
    ],
    [["a", "b"], [], []],
  ])("after %j of %j are %j", (before, now, fresh) => {
    expect(newLines(before, now)).toEqual(fresh);
  });
});

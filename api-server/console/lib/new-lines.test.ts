import { describe, expect, it } from "vitest";
import { newLines } from "./new-lines.ts";

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

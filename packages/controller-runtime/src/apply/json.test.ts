import { describe, expect, it } from "vitest";
import { mergePatch } from "./json.ts";

describe("mergePatch", () => {
  it.each([
    ["nothing differs", { a: 1, b: { c: [1] } }, { b: { c: [1] }, a: 1 }, undefined],
    ["a member is new", { a: 1 }, { a: 1, b: 2 }, { b: 2 }],
    ["a member is removed", { a: 1, b: 2 }, { a: 1 }, { b: null }],
    ["a member is undefined", { a: 1, b: 2 }, { a: 1, b: undefined }, { b: null }],
    ["an inner member differs", { a: { b: 1, c: 2, d: 3 } }, { a: { b: 1, c: 4 } }, { a: { c: 4, d: null } }],
    ["a list differs", { a: [1, 2] }, { a: [2, 1] }, { a: [2, 1] }],
    ["a list of objects is the same", { a: [{ b: 1, c: 2 }] }, { a: [{ c: 2, b: 1 }] }, undefined],
    ["an absent member becomes false", {}, { a: false }, { a: false }],
  ])("%s", (_name, before, after, patch) => {
    expect(mergePatch(before, after)).toEqual(patch);
  });
});

import { expect, test } from "vitest";
import { contentHash, normalizeGoMod } from "./hash.ts";

test("the same bytes cut elsewhere have another hash", () => {
  expect(contentHash(["ab", "c"])).not.toBe(contentHash(["a", "bc"]));
  expect(contentHash(["ab", "c"])).toBe(contentHash([Buffer.from("ab"), "c"]));
  expect(contentHash([])).toMatch(/^[0-9a-f]{16}$/);
});

test("comments, order and blocks of a go.mod make no difference, versions do", () => {
  const one = "module m\n\nrequire a v1 // indirect\n\nrequire (\n\tb v2\n)\n";
  const other = "// A comment.\nmodule m\nrequire (\n\tb v2\n\ta v1\n)\n";
  expect(normalizeGoMod(one)).toBe(normalizeGoMod(other));
  expect(normalizeGoMod(one)).not.toBe(normalizeGoMod(one.replace("v2", "v3")));
});

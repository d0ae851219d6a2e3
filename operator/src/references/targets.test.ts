import { expect, test } from "vitest";
import { hasValues } from "./targets.ts";

test.each([
  ["without references", [{ name: "plain" }], true],
  ["with values of all", [{ name: "plain" }, { name: "one", references: [] }], true],
  [
    "without values of one",
    [
      { name: "one", references: [] },
      { name: "two", references: [] },
    ],
    false,
  ],
])("a version has its values %s", (_, envsFrom, expected) => {
  expect(hasValues({ envsFrom }, new Map([["one", "shop-refs-000000000001"]]))).toBe(expected);
});

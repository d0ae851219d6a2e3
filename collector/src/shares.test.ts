import { expect, test } from "vitest";
import { firstOfMost, isWithinShare, UnsentBytes } from "./shares.ts";

test("a batch's bytes are those of its organizations, as long as it waits", () => {
  const unsent = new UnsentBytes();
  unsent.add(
    1,
    1_000,
    new Map([
      ["o1", 3_000],
      ["o2", 1_000],
    ]),
  );
  unsent.add(2, 500, new Map([["o1", 10]]));
  expect(["o1", "o2", "o3"].map((one) => unsent.of(one))).toEqual([1_250, 250, 0]);
  unsent.remove(1);
  unsent.remove(7);
  expect(["o1", "o2"].map((one) => unsent.of(one))).toEqual([500, 0]);
  unsent.remove(2);
  expect(unsent.of("o1")).toBe(0);
});

test.each([
  [1, 250],
  [2, 200],
  [10, 76],
  [50, 18],
])(
  "of %i organizations that write without end each has about %i of 1,000, and some is left",
  (count, each) => {
    const unsent = Array.from({ length: count }, () => 0);
    const left = () => 1_000 - unsent.reduce((sum, one) => sum + one, 0);
    for (let round = 0; round < 1_000; round += 1) {
      for (const [index, bytes] of unsent.entries()) {
        unsent[index] = bytes + (isWithinShare(bytes, left()) ? 1 : 0);
      }
    }
    expect(Math.max(...unsent)).toBeLessThanOrEqual(each + 2);
    expect(Math.min(...unsent)).toBeGreaterThanOrEqual(each - 2);
    // The next one, who has nothing yet, may write.
    expect(isWithinShare(0, left())).toBe(true);
  },
);

test("the one that has the most gives the first of its own", () => {
  expect(firstOfMost(["b1", "a1", "a2", "b2", "a3"], (item) => item.slice(0, 1))).toBe("a1");
  expect(firstOfMost([], String)).toBe(undefined);
});

import { expect, test } from "vitest";
import { Recent } from "./recent.ts";

let now = 0;
let asked = 0;
const recent = () => {
  now = 1_000;
  asked = 0;
  return new Recent<number>(2_000, 3, () => now);
};
const work = async () => ++asked;

// Shows: docs/analytics.md#the-api: an answer is given again for two seconds at the most, and never
test("the same question is given the same answer for a while, also at once", async () => {
  const answers = recent();
  expect(await Promise.all([answers.of("a", work), answers.of("a", work)])).toEqual([1, 1]);
  now += 2_000;
  expect(await answers.of("a", work)).toBe(1);
  now += 1;
  expect(await answers.of("a", work)).toBe(2);
});

test("another question is given its own", async () => {
  const answers = recent();
  expect(await answers.of("a", work)).toBe(1);
  expect(await answers.of("b", work)).toBe(2);
  expect(await answers.of("a", work)).toBe(1);
});

test("a failure is told to who waits for it, and not again", async () => {
  const answers = recent();
  const broken = async () => Promise.reject(new Error("away"));
  const both = [answers.of("a", broken), answers.of("a", work)];
  await expect(both[0]).rejects.toThrow("away");
  await expect(both[1]).rejects.toThrow("away");
  expect(await answers.of("a", work)).toBe(1);
});

test("the oldest answers go when there are many", async () => {
  const answers = recent();
  for (const question of ["a", "b", "c", "d"]) {
    await answers.of(question, work);
  }
  expect(await answers.of("d", work)).toBe(4);
  expect(await answers.of("a", work)).toBe(5);
});

import { expect, test } from "vitest";
import { isCounted } from "./quota.ts";

const hard = { "requests.cpu": "200", "count/projects.slipway.dev": "50" };
const used = { "requests.cpu": "0", "count/projects.slipway.dev": "0" };
const isCountedAs = (status?: object) => isCounted(hard, { metadata: { name: "slipway-quota" }, status });

test("a quota is counted once its limits are taken over, and everything that they bound has a count", () => {
  expect(isCountedAs()).toBe(false);
  expect(isCountedAs({})).toBe(false);
  expect(isCountedAs({ hard, used: { "requests.cpu": "0" } })).toBe(false);
  expect(isCountedAs({ hard: { ...hard, "requests.cpu": "100" }, used })).toBe(false);
  expect(isCountedAs({ hard: { ...hard, "requests.cpu": "200000m" }, used })).toBe(true);
});

import { expect, test } from "vitest";
import { isCounted } from "./quota.ts";

const hard = { "requests.cpu": "200", "count/projects.slipway.dev": "50" };
const used = { "requests.cpu": "0", "count/projects.slipway.dev": "0" };
const quota = (status?: object) => ({ metadata: { name: "slipway-quota" }, spec: { hard }, status });

test("a quota is counted once its limits are taken over, and everything that they bound has a count", () => {
  expect(isCounted(quota())).toBe(false);
  expect(isCounted(quota({}))).toBe(false);
  expect(isCounted(quota({ hard, used: { "requests.cpu": "0" } }))).toBe(false);
  expect(isCounted(quota({ hard: { ...hard, "requests.cpu": "100" }, used }))).toBe(false);
  expect(isCounted(quota({ hard: { ...hard, "requests.cpu": "200000m" }, used }))).toBe(true);
});

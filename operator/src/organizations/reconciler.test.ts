import { expect, test } from "vitest";
import { isCounted, QuotaCounting, RECOUNT_MS } from "./reconciler.ts";

const hard = { "requests.cpu": "200", "count/projects.slipway.dev": "50" };
const used = { "requests.cpu": "0", "count/projects.slipway.dev": "0" };
const isCountedAs = (status?: object) => isCounted(hard, { metadata: { name: "slipway-quota" }, status });

test("a quota is counted once its limits are in its status, and everything that they bound has a count", () => {
  expect(isCountedAs()).toBe(false);
  expect(isCountedAs({})).toBe(false);
  expect(isCountedAs({ hard, used: { "requests.cpu": "0" } })).toBe(false);
  expect(isCountedAs({ hard: { ...hard, "requests.cpu": "100" }, used })).toBe(false);
  expect(isCountedAs({ hard: { ...hard, "requests.cpu": "200000m" }, used })).toBe(true);
});

test("a quota that stays uncounted is created again, each one by its own time", () => {
  let now = 1_000;
  const counting = new QuotaCounting({ monotonic: () => now });
  expect(counting.leftMs("slipway-org-a", "u1")).toBe(RECOUNT_MS);
  now += 10_000;
  expect(counting.leftMs("slipway-org-a", "u1")).toBe(RECOUNT_MS - 10_000);
  expect(counting.leftMs("slipway-org-b", "u9")).toBe(RECOUNT_MS);
  now += RECOUNT_MS;
  expect(counting.leftMs("slipway-org-a", "u1")).toBe(0);
  expect(counting.leftMs("slipway-org-a", "u2")).toBe(RECOUNT_MS);
  counting.forget("slipway-org-a");
  now += RECOUNT_MS;
  expect(counting.leftMs("slipway-org-a", "u2")).toBe(RECOUNT_MS);
});

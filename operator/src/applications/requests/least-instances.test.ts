import { beforeEach, expect, test } from "vitest";
import { LeastInstances, type Target } from "./least-instances.ts";

const target: Target = { uid: "u1", key: "acme/pshop", perInstance: 10, min: 1, max: 5 };

let least: LeastInstances;
let now: number;

beforeEach(() => {
  least = new LeastInstances();
  now = 0;
});

/** One round, ten seconds after the last one. @returns the number after it */
function at(rate: number, { isComplete = true, ...change }: Partial<Target> & { isComplete?: boolean } = {}) {
  now += 10_000;
  const before = least.of(target.uid);
  const changed = least.update([{ ...target, ...change }], { of: () => rate, isComplete }, now);
  const after = least.of(target.uid);
  if (before !== undefined) {
    expect(changed.length > 0).toBe(before !== after);
  }
  return after;
}

// Shows: docs/applications.md#scaling-by-requests: never below `instances`, never above `max_instances`
test.each([
  [0, 1],
  [10, 1],
  [10.9, 1],
  [11.1, 2],
  [30, 3],
  [30.9, 3],
  [1_000, 5],
])("%d requests a second need %d instances for 10 each, from one to five", (rate, instances) => {
  expect(at(rate)).toBe(instances);
  expect(at(rate)).toBe(instances);
});

// Shows: docs/applications.md#scaling-by-requests: more instances as soon as they are needed, fewer once they were enough for five minutes
test("more is needed immediately, less once it was enough for five minutes", () => {
  expect(at(10)).toBe(1);
  expect(at(30)).toBe(3);
  expect(least.decisionOf("u1")).toEqual({ instances: 3, requestsPerSecond: 30 });
  expect(at(20)).toBe(2 + 1);
  for (let round = 0; round < 29; round += 1) {
    expect(at(5)).toBe(3);
  }
  // Three were needed last more than five minutes ago, two ten seconds later.
  expect(at(5)).toBe(2);
  expect(at(5)).toBe(1);
  expect(least.decisionOf("u1")).toEqual({ instances: 1, requestsPerSecond: 5 });
});

// Shows: docs/applications.md#scaling-by-requests: without figures nothing is removed
test("where figures are missing instances may be added, and none are removed", () => {
  expect(at(30)).toBe(3);
  for (let round = 0; round < 60; round += 1) {
    expect(at(0, { isComplete: false })).toBe(3);
  }
  expect(at(40, { isComplete: false })).toBe(4);
  for (let round = 0; round < 30; round += 1) {
    expect(at(0)).toBe(4);
  }
  expect(at(0)).toBe(1);
});

// Shows: docs/applications.md#scaling-by-requests: without figures nothing is removed
test("an operator that starts keeps what its predecessor has decided for five minutes", () => {
  expect(at(0, { live: 4 })).toBe(4);
  expect(least.decisionOf("u1")).toBeUndefined();
  for (let round = 0; round < 30; round += 1) {
    expect(at(0, { live: 4 })).toBe(4);
  }
  expect(at(0, { live: 4 })).toBe(1);
});

test("other bounds hold immediately, and a project that is no longer scaled is forgotten", () => {
  expect(at(50)).toBe(5);
  expect(at(50, { max: 2 })).toBe(2);
  expect(at(0, { min: 4 })).toBe(5);
  expect(least.update([], { of: () => 0, isComplete: true }, now)).toEqual([]);
  expect(least.of("u1")).toBeUndefined();
});

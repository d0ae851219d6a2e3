import { expect, test, vi } from "vitest";
import { RequestBounds } from "./bounds.ts";

const none = () => {};

// Shows: docs/sleep.md#bounds: requests in hand of a project (200), of an organization (400)
test("a project and an organization have only so many requests, and room again when one ends", () => {
  const bounds = new RequestBounds({ total: 10, perOrganization: 3, perProject: 2 });
  const end = bounds.admit("acme", "p1", none);
  expect(bounds.admit("acme", "p1", none)).toBeDefined();
  expect(bounds.admit("acme", "p1", none)).toBeUndefined();
  expect(bounds.admit("acme", "p2", none)).toBeDefined();
  expect(bounds.admit("acme", "p3", none)).toBeUndefined();
  end?.();
  end?.();
  expect(bounds.total).toBe(2);
  expect(bounds.admit("acme", "p3", none)).toBeDefined();
});

// Shows: docs/sleep.md#bounds: and of all together (2,000), by each activator: the newest of the
test("where there is no room, an organization with fewer requests takes the place of the newest of the one with most", () => {
  const bounds = new RequestBounds({ total: 4, perOrganization: 4, perProject: 4 });
  const evicted = [0, 1, 2, 3].map(() => vi.fn());
  for (const evict of evicted) {
    bounds.admit("large", "p1", evict);
  }
  expect(bounds.admit("large", "p1", none)).toBeUndefined();
  expect(bounds.admit("small", "p2", none)).toBeDefined();
  expect(bounds.admit("small", "p2", none)).toBeDefined();
  expect(evicted.map((one) => one.mock.calls.length)).toEqual([0, 0, 1, 1]);
  // Both have as many now.
  expect(bounds.admit("small", "p2", none)).toBeUndefined();
  expect(bounds.total).toBe(4);
});

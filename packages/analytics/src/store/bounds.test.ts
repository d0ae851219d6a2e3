import { expect, test } from "vitest";
import { random, randomEvent } from "../../../../test/kit/analytics/store/events.ts";
import { MAX_AGENTS_PER_MINUTE, MAX_ROUTES_PER_MINUTE, MinuteBounds, OTHER } from "./bounds.ts";

const event = randomEvent(random(1), ["o/p"], 0, 1);

// Shows: docs/analytics.md#the-api: the number of distinct names is bounded
test("the first routes and user agents of a minute keep their names, the others share one", () => {
  const bounds = new MinuteBounds();
  const many = Array.from({ length: 1_000 }, (_, one) =>
    bounds.bound({ ...event, at: one, route: `/${one}`, userAgent: `a${one}` }),
  );
  expect(new Set(many.map(({ route }) => route)).size).toBe(MAX_ROUTES_PER_MINUTE + 1);
  expect(new Set(many.map(({ userAgent }) => userAgent)).size).toBe(MAX_AGENTS_PER_MINUTE + 1);
  expect(many.at(-1)).toMatchObject({ route: OTHER, userAgent: OTHER, path: event.path });
  expect(bounds.bound({ ...event, route: "/0" }).route).toBe("/0");
});

test("another minute and another project have bounds of their own", () => {
  const bounds = new MinuteBounds();
  for (let one = 0; one < 500; one++) {
    bounds.bound({ ...event, at: 0, route: `/${one}` });
  }
  expect(bounds.bound({ ...event, at: 0, route: "/new" }).route).toBe(OTHER);
  expect(bounds.bound({ ...event, at: 60_000, route: "/new" }).route).toBe("/new");
  expect(bounds.bound({ ...event, at: 0, project: "q", route: "/new" }).route).toBe("/new");
});

test("what it remembers is bounded itself", () => {
  const bounds = new MinuteBounds(2);
  for (const project of ["a", "b", "c"]) {
    for (let one = 0; one < 500; one++) {
      bounds.bound({ ...event, at: 0, project, route: `/${one}` });
    }
  }
  expect(bounds.bound({ ...event, at: 0, project: "c", route: "/new" }).route).toBe(OTHER);
  expect(bounds.bound({ ...event, at: 0, project: "a", route: "/new" }).route).toBe("/new");
});

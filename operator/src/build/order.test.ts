import { expect, test } from "vitest";
import { hasNewer, isItsTurn, isNewer, REQUESTED_AT, requestedAt } from "./order.ts";
import { exampleBuild } from "./testing.ts";

const of = (
  project: string,
  name: string,
  second: number,
  phase?: "building" | "success",
  step?: "publish",
) =>
  exampleBuild(name, second, {
    spec: { ...exampleBuild(name, 0).spec, projectRef: { name: project } },
    status: { phase, step },
  });

test("of two builds one is newer, also within a second", () => {
  const [a, b] = [exampleBuild("ba", 1), exampleBuild("bb", 1)];
  expect(isNewer(b, a)).toBe(true);
  expect(isNewer(a, b)).toBe(false);
  a.metadata.annotations = { [REQUESTED_AT]: "2026-01-01T00:00:01.900Z" };
  b.metadata.annotations = { [REQUESTED_AT]: "2026-01-01T00:00:01.100Z" };
  expect(isNewer(a, b)).toBe(true);
});

test("an annotation only tells the part of the second: nobody becomes the newest of all by it", () => {
  const build = exampleBuild("ba", 1);
  build.metadata.annotations = { [REQUESTED_AT]: "2030-01-01T00:00:00Z" };
  expect(requestedAt(build)).toBe("2026-01-01T00:00:01.000Z");
});

test("a newer build is one of the same project and organization", () => {
  const one = of("pa", "b1", 1);
  expect(hasNewer(one, [one, of("pb", "b2", 2)])).toBe(false);
  expect(hasNewer(one, [one, of("pa", "b0", 0)])).toBe(false);
  expect(hasNewer(one, [one, of("pa", "b2", 2, "success")])).toBe(true);
});

test("places go to the oldest; one that only publishes, has ended or gives way holds none", () => {
  const turn = (builds: ReturnType<typeof of>[], starting: string[] = []) =>
    builds
      .filter((build) => isItsTurn(build, builds, new Set(starting), 2))
      .map(({ metadata }) => metadata.name);
  const pending = [of("pa", "b1", 1), of("pb", "b2", 2), of("pc", "b3", 3)];
  expect(turn(pending)).toEqual(["b1", "b2"]);
  expect(turn([of("pd", "b0", 0, "building"), ...pending]).filter((name) => name !== "b0")).toEqual(["b1"]);
  expect(turn([of("pd", "b0", 0, "building", "publish"), ...pending])).toContain("b2");
  expect(turn([of("pd", "b0", 0, "success"), ...pending])).toContain("b2");
  // b1 gives way to a newer one of its project, which waits behind the others.
  expect(turn([...pending, of("pa", "b4", 4)])).toEqual(["b1", "b2", "b3"]);
  // One that is being started holds a place already, though its status does not say so yet.
  expect(turn(pending, ["uid-b3"])).toEqual(["b1"]);
});

import { expect, test } from "vitest";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { hasNewer, isAdmissible, isNewer, requestedAt } from "./queue.ts";

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
  a.spec.requestedAt = "2026-01-01T00:00:01.900Z";
  b.spec.requestedAt = "2026-01-01T00:00:01.100Z";
  expect(isNewer(a, b)).toBe(true);
  // As an earlier version recorded it.
  const formerly = exampleBuild("bb", 1);
  formerly.metadata.annotations = { "slipway.dev/updated-at": "2026-01-01T00:00:01.950Z" };
  expect(isNewer(formerly, a)).toBe(true);
});

test("the recorded time only refines the second: it makes no build the newest of all", () => {
  const build = exampleBuild("ba", 1);
  build.spec.requestedAt = "2030-01-01T00:00:00Z";
  expect(requestedAt(build)).toBe("2026-01-01T00:00:01.000Z");
});

test("a newer build is one of the same project and organization", () => {
  const one = of("pa", "b1", 1);
  expect(hasNewer(one, [one, of("pb", "b2", 2)])).toBe(false);
  expect(hasNewer(one, [one, of("pa", "b0", 0)])).toBe(false);
  expect(hasNewer(one, [one, of("pa", "b2", 2, "success")])).toBe(true);
});

// Shows: docs/builds.md#bounds: builds of one organization at once | `builds.concurrency` (2); more
test("quota goes to the oldest; one that only publishes, has ended or is superseded uses none", () => {
  const turn = (builds: ReturnType<typeof of>[], starting: string[] = []) =>
    builds
      .filter((build) => isAdmissible(build, builds, new Set(starting), { organization: 2, platform: 20 }))
      .map(({ metadata }) => metadata.name);
  const pending = [of("pa", "b1", 1), of("pb", "b2", 2), of("pc", "b3", 3)];
  expect(turn(pending)).toEqual(["b1", "b2"]);
  expect(turn([of("pd", "b0", 0, "building"), ...pending]).filter((name) => name !== "b0")).toEqual(["b1"]);
  expect(turn([of("pd", "b0", 0, "building", "publish"), ...pending])).toContain("b2");
  expect(turn([of("pd", "b0", 0, "success"), ...pending])).toContain("b2");
  // b1 is superseded by a newer one of its project, which waits behind the others.
  expect(turn([...pending, of("pa", "b4", 4)])).toEqual(["b1", "b2", "b3"]);
  // One that is being started uses quota before its status shows it.
  expect(turn(pending, ["uid-b3"])).toEqual(["b1"]);
});

// Shows: docs/builds.md#bounds: builds of all organizations at once | `builds.platformConcurrency`
test("the platform's quota goes to the organizations with fewest builds", () => {
  const places = { organization: 2, platform: 3 };
  const from = (organization: string, build: ReturnType<typeof of>) => ({
    ...build,
    metadata: { ...build.metadata, namespace: `slipway-org-${organization}` },
  });
  const greedy = Array.from({ length: 50 }, (_, index) =>
    from("greedy", of(`p${index}`, `b${index}`, index % 60)),
  );
  const one = from("one", of("px", "bx", 58));
  const other = from("other", of("py", "by", 59));
  const turn = (builds: typeof greedy) =>
    builds
      .filter((build) => isAdmissible(build, builds, new Set(), places))
      .map(({ metadata }) => metadata.name);
  expect(turn([...greedy, one, other])).toEqual(["b0", "bx", "by"]);
  expect(turn([...greedy, one])).toEqual(["b0", "b1", "bx"]);
  const running = [
    from("greedy", of("pa", "ba", 0, "building")),
    from("greedy", of("pb", "bb", 0, "building")),
  ];
  expect(turn([...running, ...greedy, one, other]).filter((name) => !["ba", "bb"].includes(name))).toEqual([
    "bx",
  ]);
});

test("a thousand waiting builds are ordered quickly", () => {
  const many = Array.from({ length: 1_000 }, (_, index) => of(`p${index}`, `b${index}`, index % 60));
  const before = process.threadCpuUsage();
  expect(
    isAdmissible(many[999] as (typeof many)[number], many, new Set(), { organization: 2, platform: 20 }),
  ).toBe(false);
  expect(process.threadCpuUsage(before).user).toBeLessThan(300_000);
});

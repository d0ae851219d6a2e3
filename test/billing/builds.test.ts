import { buildCharge, type EndedBuild, type PriceList, type ResourceCharge } from "@slipway/crds";
import fc from "fast-check";
import { expect, it, test } from "vitest";
import { isLong } from "../kit/long.ts";
import { buildExamples, instant, prices } from "./page.ts";
import { cents, recomputeBuilds } from "./recomputation.ts";

const DAY = 86_400_000;

interface Build {
  id: string;
  began: number;
  ended: number;
  code?: string | undefined;
}

const charge = ({ id, began, ended, code }: Build, lists: readonly PriceList[]): ResourceCharge[] => {
  const build: EndedBuild = {
    projectUid: "uid",
    buildId: id,
    startedAt: began,
    finishedAt: ended,
    errorCode: code,
  };
  return [buildCharge(build, lists) ?? []].flat();
};

const amounts = (charges: readonly ResourceCharge[]): Map<string, bigint> =>
  new Map(charges.map(({ key, amount }) => [key.slice("uid/build_minute/".length), cents(amount)]));

// Shows: docs/billing.md#build-minutes: Each begun minute of a build is charged
// Shows: docs/billing.md#build-minutes: with the price that was in force when it began
// Shows: docs/billing.md#build-minutes: neither does one that the platform failed
it.each(buildExamples.map((example) => [example.example, example] as const))(
  "%s: the charges that the page has, also computed from the page alone",
  (_, example) => {
    const builds = example.builds.map(({ began, ended, ...build }) => ({
      ...build,
      began: instant(began),
      ended: instant(ended),
    }));
    const found = builds.flatMap((build) => charge(build, prices));
    expect(found).toEqual(
      example.charges.map(({ build, from, ...written }) =>
        expect.objectContaining({ key: `uid/build_minute/${build}`, from: instant(from), ...written }),
      ),
    );
    expect(amounts(found)).toEqual(recomputeBuilds(builds, prices));
  },
);

it("the page has an example of each rule, and of nothing to pay", () => {
  expect(buildExamples.filter(({ charges }) => charges.length === 0)).toHaveLength(1);
  expect(buildExamples.length).toBeGreaterThanOrEqual(3);
});

test("generated builds are charged as the page says, to the fraction", () => {
  const price = fc.constantFrom(undefined, "0", "3", "0.000000000000000001", "333333333.333333333333333333");
  const build = fc.record({
    began: fc.integer({ min: 0, max: 3 * DAY }),
    ms: fc.oneof(
      fc.integer({ min: -DAY, max: 2 * DAY }),
      fc.integer({ min: 0, max: 62 }).map((minutes) => minutes * 60_000),
    ),
    code: fc.constantFrom(undefined, "BUILD_FAILED", "BUILD_ENGINE_FAILED", "PROJECT_PUBLISH_FAILED"),
  });
  const lists = fc.uniqueArray(fc.record({ from: fc.integer({ min: 0, max: 2 * DAY }), price }), {
    selector: ({ from }) => from,
    maxLength: 4,
  });
  fc.assert(
    fc.property(fc.array(build, { maxLength: 5 }), lists, (made, written) => {
      const builds = made.map(({ began, ms, code }, index) => ({
        id: `b${index}`,
        began,
        ended: began + ms,
        code,
      }));
      const known: PriceList[] = written
        .sort((a, b) => a.from - b.from)
        .map(({ from, price: buildMinute }) => ({
          from,
          gbHour: "0",
          plans: {},
          ...(buildMinute === undefined ? {} : { resources: { buildMinute } }),
        }));
      const found = builds.flatMap((one) => charge(one, known));
      expect(amounts(found)).toEqual(recomputeBuilds(builds, known));
      for (const { from, to, finalAt } of found) {
        expect(from < to && from <= finalAt && finalAt <= to).toBe(true);
      }
    }),
    { numRuns: isLong ? 100_000 : 500 },
  );
});

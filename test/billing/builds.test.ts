import { containers } from "@slipway/builder/contract";
import {
  type BuildStatus,
  buildCharge,
  type EndedBuild,
  type PriceList,
  type ResourceCharge,
} from "@slipway/crds";
import fc from "fast-check";
import { expect, it, test } from "vitest";
import { chargedTime, endedTime } from "../../operator/src/builds/charged-time.ts";
import type { Decision } from "../../operator/src/builds/decide.ts";
import { observedPod } from "../../operator/src/builds/observer.ts";
import type { BuildPod } from "../../operator/src/builds/pod-state.ts";
import { isLong } from "../kit/long.ts";
import { exampleBuild } from "../kit/operator/builds.ts";
import { buildExamples, instant, prices, type WrittenBuild } from "./page.ts";
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
    ranFrom: began,
    ranUntil: ended,
    errorCode: code,
  };
  return [buildCharge(build, lists) ?? []].flat();
};

/** By what the operator reads of its pods. */
function observed({ id, code, ...build }: WrittenBuild): Build {
  if (!build.pods) {
    return { id, code, began: instant(build.began), ended: instant(build.ended) };
  }
  let status: BuildStatus = { phase: "building" };
  for (const { began, ended, lost } of build.pods) {
    const pod = lost === undefined ? observedPod(podOf(began, ended ?? build.ended)) : undefined;
    const decision: Decision = pod ? { do: "built", report: { digest } } : { do: "wait", reason: "Waiting" };
    const running = observedPod(podOf(began));
    status = { ...status, ...chargedTime({ build: { ...one, status }, pod: running }, building) };
    status = { ...status, ...none, ...chargedTime({ build: { ...one, status }, pod }, decision) };
  }
  const { ranFrom = "", ranUntil = "" } = endedTime(status, {
    now: () => new Date(build.ended),
    deadlineSeconds: 1_800,
  });
  return { id, code, began: instant(ranFrom), ended: instant(ranUntil) };
}

const digest = `sha256:${"a".repeat(64)}`;
const one = exampleBuild("b1", 0);
const none = { ranFrom: undefined, ranUntil: undefined };
const building: Decision = { do: "wait", reason: "Building" };

/** A pod whose containers run, or have ended. */
function podOf(startedAt: string, finishedAt?: string): BuildPod {
  const message = JSON.stringify({ step: "push", digest });
  const state = finishedAt
    ? { terminated: { exitCode: 0, message, startedAt, finishedAt } }
    : { running: { startedAt } };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p" },
    status: { containerStatuses: containers.map((name) => ({ name, state })) },
  };
}

/** As the page has it. */
function written({ id, code, ...build }: WrittenBuild): Build {
  const { began, ended = build.ended } = build.pods?.at(-1) ?? (build as { began: string; ended: string });
  return { id, code, began: instant(began), ended: instant(ended) };
}

const amounts = (charges: readonly ResourceCharge[]): Map<string, bigint> =>
  new Map(charges.map(({ key, amount }) => [key.slice("uid/build_minute/".length), cents(amount)]));

// Shows: docs/billing.md#build-minutes: Each begun minute in which a build's containers ran is charged
// Shows: docs/billing.md#build-minutes: Only the attempt that ended the build counts
// Shows: docs/billing.md#build-minutes: with the price that was in force when its containers started
// Shows: docs/billing.md#build-minutes: neither does one that the platform failed
it.each(buildExamples.map((example) => [example.example, example] as const))(
  "%s: the charges that the page has, also computed from the page alone",
  (_, example) => {
    const found = example.builds.flatMap((build) => charge(observed(build), prices));
    expect(found).toEqual(
      example.charges.map(({ build, from, ...written }) =>
        expect.objectContaining({ key: `uid/build_minute/${build}`, from: instant(from), ...written }),
      ),
    );
    expect(amounts(found)).toEqual(recomputeBuilds(example.builds.map(written), prices));
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

import { describe, expect, test } from "vitest";
import { liveOf, type PodShape, podOf } from "../../../../test/kit/databases/examples.ts";
import { primaryOf } from "./pods.ts";
import { nextRollStep } from "./rolling.ts";

const old = { current: false } as const;
const primary = { role: "primary" } as const;
const replica = { role: "replica" } as const;

/** The step as a word and the pods that it is about. */
function step(shapes: readonly PodShape[], wanted = shapes.length): string {
  const live = liveOf(shapes.map((shape, ordinal) => podOf(ordinal, shape)));
  const next = nextRollStep(live, primaryOf(live), wanted);
  const name = (pod: { metadata: { name?: string } }) => pod.metadata.name?.replace("shop-", "");
  switch (next.kind) {
    case "delete":
      return `delete ${name(next.pod)}`;
    case "switchover":
      return `switchover ${name(next.from)} to ${next.to.map(name).join()}`;
    default:
      return next.kind;
  }
}

describe("outdated pods are replaced", () => {
  test.each([
    ["not at all when none is outdated", [primary, replica], "done"],
    [
      "beginning with the last replica",
      [
        { ...primary, ...old },
        { ...replica, ...old },
        { ...replica, ...old },
      ],
      "delete 2",
    ],
    [
      "with the next one when that one serves",
      [{ ...primary, ...old }, { ...replica, ...old }, replica],
      "delete 1",
    ],
    [
      "not while one does not serve",
      [
        { ...primary, ...old },
        { ...replica, ...old },
        { ...replica, ready: false },
      ],
      "wait",
    ],
    [
      "not while one is ending",
      [
        { ...primary, ...old },
        { ...replica, deleting: true },
      ],
      "wait",
    ],
    [
      "once more when one that was replaced does not serve",
      [{ ...primary, ...old }, replica, { ...replica, ...old, ready: false }],
      "delete 2",
    ],
    [
      "the primary only after another has taken over",
      [{ ...primary, ...old }, replica, replica],
      "switchover 0 to 1,2",
    ],
    ["the primary at last, when it is one no longer", [{ ...replica, ...old }, primary, replica], "delete 0"],
    ["the only one immediately", [{ ...primary, ...old }], "delete 0"],
    ["none that works while none is the primary", [{ ...replica, ...old }, replica, replica], "wait"],
  ] as const)("%s", (_, shapes, want) => {
    expect(step(shapes)).toBe(want);
  });

  test("not while one is missing", () => {
    expect(
      step(
        [
          { ...primary, ...old },
          { ...replica, ...old },
        ],
        3,
      ),
    ).toBe("wait");
  });
});

test("no pod is deleted before the StatefulSet's controller has observed its template", () => {
  const pods = [podOf(0, { ...primary, ...old })];
  const { spec } = liveOf(pods).statefulSet ?? {};
  const seen = (observedGeneration: number) =>
    liveOf(pods, { statefulSet: { metadata: { generation: 2 }, spec, status: { observedGeneration } } });
  expect(nextRollStep(seen(1), pods[0], 1).kind).toBe("wait");
  expect(nextRollStep(seen(2), pods[0], 1).kind).toBe("delete");
});

test("of two primaries, which should never exist, none counts", () => {
  expect(primaryOf(liveOf([podOf(0, primary), podOf(1, primary)]))).toBeUndefined();
  expect(primaryOf(liveOf([podOf(0, { ...primary, ready: false }), podOf(1, replica)]))).toBeUndefined();
});

import { expect, test } from "vitest";
import { type PodShape, podOf } from "../../../../test/kit/databases/examples.ts";
import type { LivePod } from "../driver.ts";
import type { MemberState } from "./member-state.ts";
import { choosePrimary, relabelled } from "./topology.ts";

const serves = (state = 4): MemberState => ({
  phase: "running",
  run: "r",
  primary: true,
  ready: true,
  state,
  size: 3,
  events: false,
  version: "11.8.6",
});
const waits: MemberState = { phase: "waiting", run: "r", data: "none", safe: false };

const primary: PodShape = { role: "primary" };
const replica: PodShape = { role: "replica" };
const pods = (...shapes: PodShape[]) => shapes.map((shape, ordinal) => podOf(ordinal, shape));
const chosen = (all: readonly LivePod[], facts: readonly (MemberState | undefined)[]) =>
  choosePrimary(
    new Map(
      all.flatMap((pod, ordinal): [LivePod, MemberState][] => {
        const fact = facts[ordinal];
        return fact ? [[pod, fact]] : [];
      }),
    ),
  )?.metadata.name;

test.each<[string, PodShape[], (MemberState | undefined)[], string | undefined]>([
  ["stays where it is", [replica, primary, replica], [serves(), serves(), serves()], "shop-1"],
  ["stays while it gives a copy", [replica, primary, {}], [serves(), serves(2), waits], "shop-1"],
  [
    "leaves a member that does not answer",
    [primary, replica, replica],
    [undefined, serves(), serves()],
    "shop-1",
  ],
  ["leaves a member that is not in the group", [primary, replica, {}], [waits, serves(), waits], "shop-1"],
  [
    "leaves a member whose pod is not ready",
    [{ role: "primary", ready: false }, replica, replica],
    [serves(), serves(), serves()],
    "shop-1",
  ],
  [
    "leaves a member that is being deleted",
    [{ role: "primary", deleting: true }, replica, replica],
    [serves(), serves(), serves()],
    "shop-1",
  ],
  ["goes to who does not give a copy", [{}, {}, {}], [serves(2), serves(), waits], "shop-1"],
  ["goes to the first that serves", [{ ready: false }, {}, {}], [serves(), waits, waits], "shop-0"],
  ["is nowhere without a group", [primary, replica, replica], [waits, waits, undefined], undefined],
])("the primary's label %s", (_, shapes, facts, want) => {
  expect(chosen(pods(...shapes), facts)).toBe(want);
});

test("labels are taken from the old primary before the new one gets them", () => {
  const all = pods({ role: "primary", deleting: true }, replica, {});
  const changes = relabelled(all, all[1]).map(({ pod, role }) => `${pod.metadata.name} ${role}`);
  expect(changes).toEqual(["shop-2 replica", "shop-0 replica", "shop-1 primary"]);
  expect(relabelled(pods(primary, replica, replica), undefined)).toEqual([]);
});

test("labels that are right stay", () => {
  const all = pods(primary, replica, replica);
  expect(relabelled(all, all[0])).toEqual([]);
});

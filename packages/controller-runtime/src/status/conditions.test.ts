import { describe, expect, it } from "vitest";
import { ConditionSet, isConditionTrue, setCondition } from "./conditions.ts";

const NOW = new Date("2026-01-01T00:00:00.123Z");
const LATER = new Date("2026-01-01T01:00:00Z");

describe("setCondition", () => {
  it("adds one, with time and generation", () => {
    const update = { type: "Ready", status: "True", reason: "Ok" } as const;
    expect(setCondition([], update, { now: NOW, generation: 3 })).toEqual([
      {
        type: "Ready",
        status: "True",
        reason: "Ok",
        message: "",
        lastTransitionTime: "2026-01-01T00:00:00Z",
        observedGeneration: 3,
      },
    ]);
  });

  it("moves lastTransitionTime only when the status changes", () => {
    const first = setCondition([], { type: "Ready", status: "False", reason: "A" }, { now: NOW });
    const reason = setCondition(first, { type: "Ready", status: "False", reason: "B" }, { now: LATER });
    expect(reason[0]).toMatchObject({ reason: "B", lastTransitionTime: "2026-01-01T00:00:00Z" });
    const status = setCondition(reason, { type: "Ready", status: "True", reason: "B" }, { now: LATER });
    expect(status[0]).toMatchObject({ lastTransitionTime: "2026-01-01T01:00:00Z" });
  });

  it("keeps one order, whatever the order of setting", () => {
    const types = ["Zeta", "Ready", "Alpha"];
    const orders = [types, types.toReversed()].map((order) =>
      order.reduce(
        (list, type) => setCondition(list, { type, status: "True", reason: "R" }, { now: NOW }),
        [] as ReturnType<typeof setCondition>,
      ),
    );
    for (const list of orders) {
      expect(list.map(({ type }) => type)).toEqual(["Ready", "Alpha", "Zeta"]);
    }
  });

  it("does not change the list it is given, and bounds the message", () => {
    const before = setCondition([], { type: "A", status: "True", reason: "R" }, { now: NOW });
    const frozen = structuredClone(before);
    const after = setCondition(
      before,
      { type: "A", status: "False", reason: "R", message: "x".repeat(5_000) },
      { now: NOW },
    );
    expect(before).toEqual(frozen);
    expect(after[0]?.message).toHaveLength(1024);
  });
});

describe("ConditionSet", () => {
  it("knows what this reconcile has touched", () => {
    const set = new ConditionSet(setCondition([], { type: "A", status: "True", reason: "R" }, { now: NOW }), {
      now: LATER,
    });
    set.set({ type: "B", status: "False", reason: "R" });
    expect([set.wasSet("A"), set.wasSet("B")]).toEqual([false, true]);
    expect([set.isTrue("A"), set.isTrue("B")]).toEqual([true, false]);
    set.remove("A");
    expect(isConditionTrue(set.list(), "A")).toBe(false);
  });
});

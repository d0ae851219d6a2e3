import { expect, it } from "vitest";
import { continued, type History, historyRange, namesOf, pastOf } from "./history.ts";

const begin = Date.UTC(2026, 10, 29, 12);
const minute = 60_000;
const later = begin + 60 * minute;
const point = (minutes: number, cpu: number | null) => ({
  at: new Date(begin + minutes * minute).toISOString(),
  ...{ cpu, memory: 5, received_bytes_per_second: 1, transmitted_bytes_per_second: null },
});
const history: History = {
  ...{ from: new Date(begin).toISOString(), to: new Date(begin + 60 * minute).toISOString() },
  resolution_seconds: 60,
  instances: [
    { instance: "new", points: [point(0, 0.1), point(1, 0.2), point(5, 0.3)] },
    { instance: "gone", points: [] },
  ],
  other_instances: ["elder"],
};

it("has a gap where steps are missing, never a line across it", () => {
  const past = pastOf(history, "new", later);
  expect(past.map(({ at, cpu }) => [(at - begin) / minute, cpu])).toEqual([
    [0.5, 0.1],
    [1.5, 0.2],
    [2.5, null],
    [5.5, 0.3],
  ]);
  expect(past[2]).toMatchObject({ memory: null, received: null, transmitted: null });
  expect(past[0]).toMatchObject({ received: 1, transmitted: null });
  expect(pastOf(history, "gone", later)).toEqual([]);
  expect(pastOf(history, "none", later)).toEqual([]);
});

it("ends the last step now, so that what the page measures comes after it", () => {
  const now = begin + 5.25 * minute;
  const past = pastOf(history, "new", now);
  expect(past.map(({ at }) => (at - begin) / minute)).toEqual([0.5, 1.5, 2.5, 5.125]);
  expect(continued(past, [{ at: now, cpu: 1, memory: 1 }])).toHaveLength(5);
});

it("goes on with what the page has measured since", () => {
  const past = pastOf(history, "new", later);
  const live = [4, 6, 7].map((minutes) => ({ at: begin + minutes * minute, cpu: 1, memory: 1 }));
  expect(continued(past, live)).toEqual([...past, live[1], live[2]]);
  expect(continued([], live)).toEqual(live);
});

it("names all instances, and knows three ranges", () => {
  expect(namesOf(history)).toEqual(["elder", "gone", "new"]);
  expect([undefined, "86400", "691200", "5"].map(historyRange)).toEqual([3_600, 86_400, 691_200, 3_600]);
});

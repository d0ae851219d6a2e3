import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { createRestartMetric, InstanceRestarts, restartNote } from "./instance-restarts.ts";
import type { Termination } from "./terminations.ts";

const termination = (podUid: string, restarts: number, extra: Partial<Termination> = {}): Termination => ({
  podUid,
  instance: podUid,
  exitCode: 3,
  reason: "Error",
  finishedAt: "2026-03-01T00:00:00Z",
  restarts,
  ...extra,
});

function counting() {
  const counter = createRestartMetric(new Registry());
  const restarts = new InstanceRestarts(counter, new FakeClock("2026-03-01T00:05:00Z"));
  const counts = async () => {
    const { values } = await counter.get();
    return Object.fromEntries(values.filter(({ value }) => value > 0).map((v) => [v.labels.reason, v.value]));
  };
  return { restarts, counts };
}

const names = (found: Termination[]) => found.map(({ instance }) => instance);

test("each restart is counted once, however often a project is observed", async () => {
  const { restarts, counts } = counting();
  expect(restarts.observe("p", [])).toEqual([]);
  expect(names(restarts.observe("p", [termination("a", 1)]))).toEqual(["a"]);
  expect(restarts.observe("p", [termination("a", 1)])).toEqual([]);
  const both = [termination("a", 3), termination("b", 1, { reason: "LivenessFailed" })];
  expect(names(restarts.observe("p", both))).toEqual(["a", "b"]);
  expect(restarts.observe("p", both)).toEqual([]);
  expect(await counts()).toEqual({ Error: 3, LivenessFailed: 1 });
});

test("another process counts what ended after what the status has, and nothing that ended long before", async () => {
  const reported = "2026-02-28T23:59:00Z";
  const next = (found: Termination, before?: string) =>
    names(counting().restarts.observe("p", [found], before));
  expect(next(termination("a", 5), reported)).toEqual(["a"]);
  expect(next(termination("a", 5), "2026-03-01T00:00:00Z")).toEqual([]);
  expect(next(termination("a", 5))).toEqual(["a"]);
  expect(next(termination("a", 5, { finishedAt: "2026-02-28T23:50:00Z" }))).toEqual([]);
  expect(next(termination("a", 0), reported)).toEqual([]);
  const { restarts, counts } = counting();
  restarts.observe("p", [termination("a", 5)], reported);
  expect(await counts()).toEqual({ Error: 1 });
});

test("projects are apart, and one that is deleted is forgotten", async () => {
  const { restarts, counts } = counting();
  restarts.observe("p", []);
  restarts.observe("q", []);
  expect(names(restarts.observe("p", [termination("a", 1)]))).toEqual(["a"]);
  expect(names(restarts.observe("q", [termination("b", 1)]))).toEqual(["b"]);
  restarts.forget("p");
  expect(restarts.observe("p", [termination("a", 1)], "2026-03-01T00:00:00Z")).toEqual([]);
  expect(await counts()).toEqual({ Error: 2 });
});

test("reasons that the metric does not know are one label", async () => {
  const { restarts, counts } = counting();
  restarts.observe("p", []);
  restarts.observe("p", [
    termination("a", 1, { reason: "ContainerCannotRun" }),
    termination("b", 1, { reason: "Whatever a runtime says" }),
    termination("c", 1, { reason: "OOMKilled" }),
  ]);
  expect(await counts()).toEqual({ Other: 2, OOMKilled: 1 });
});

test.each([
  ["LivenessFailed", "Instance a did not answer its liveness path: exit code 137, restart 2."],
  ["StartupTimeout", "Instance a did not start to serve in time: exit code 137, restart 2."],
  ["OOMKilled", "Instance a used more memory than its plan has: exit code 137, restart 2."],
  ["Error", "Instance a ended by itself: exit code 137, restart 2."],
])("an Event in words: %s", (reason, note) => {
  expect(restartNote(termination("a", 2, { reason, exitCode: 137 }))).toBe(note);
});

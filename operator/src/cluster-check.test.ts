import { ConfigError, silentLogger } from "@slipway/process";
import { expect, test, vi } from "vitest";
import { FakeClock } from "../../test/kit/processes/fake-clock.ts";
import { type ClusterCheckResult, checkCluster, watchCluster } from "./cluster-check.ts";

const UNKNOWN: ClusterCheckResult = { is: "unknown", why: "no answer" };
const UNFIT: ClusterCheckResult = { is: "incompatible", why: "another controller" };
const FIT: ClusterCheckResult = { is: "compatible" };

/** A cluster that returns these answers in turn, and is compatible after them. */
function setUp(...verdicts: ClusterCheckResult[]) {
  const clock = new FakeClock();
  const inspect = vi.fn(async () => verdicts.shift() ?? FIT);
  const log = { ...silentLogger, error: vi.fn() };
  return { clock, inspect, log, deps: { clock, inspect, log }, stop: new AbortController() };
}

test("a start waits until the cluster has answered, ever longer", async () => {
  const { clock, inspect, deps, stop } = setUp(UNKNOWN, UNKNOWN, UNKNOWN);
  const started = vi.fn();
  const starting = checkCluster(deps, stop.signal).then(started);
  await clock.advance(6_999);
  expect(inspect).toHaveBeenCalledTimes(3);
  expect(started).not.toHaveBeenCalled();
  await clock.advance(1);
  await starting;
  expect(inspect).toHaveBeenCalledTimes(4);
});

test("a start is refused by a cluster that does not fit, later too", async () => {
  const { clock, deps, stop } = setUp(UNKNOWN, UNFIT);
  const refused = expect(checkCluster(deps, stop.signal)).rejects.toThrow(ConfigError);
  await clock.advance(1_000);
  await refused;
});

test("a wait ends when the process stops", async () => {
  const { clock, deps, stop } = setUp(UNKNOWN);
  const starting = checkCluster(deps, stop.signal);
  await clock.advance(0);
  stop.abort();
  await starting;
});

test("a cluster is checked again every five minutes, and an incompatibility is reported until it is fixed", async () => {
  const { clock, inspect, log, deps, stop } = setUp(FIT, UNFIT, UNKNOWN, FIT);
  const reports: boolean[] = [];
  const watching = watchCluster(deps, (isIncompatible) => reports.push(isIncompatible), stop.signal);
  await clock.advance(299_999);
  expect(inspect).not.toHaveBeenCalled();
  await clock.advance(1);
  await clock.advance(900_000);
  expect(reports).toEqual([false, true, false]);
  expect(log.error).toHaveBeenCalledTimes(1);
  stop.abort();
  await watching;
  expect(inspect).toHaveBeenCalledTimes(4);
});

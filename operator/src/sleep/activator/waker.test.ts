import { silentLogger } from "@slipway/process";
import { beforeEach, describe, expect, it } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { ActivatorMetrics } from "./metrics.ts";
import type { SleepingProject } from "./projects.ts";
import { Waker } from "./waker.ts";

const signal = new AbortController().signal;

let clock: FakeClock;
let requested: string[];
let failures: number;
let waker: Waker;

beforeEach(() => {
  clock = new FakeClock();
  requested = [];
  failures = 0;
  waker = new Waker({
    ...{ clock, log: silentLogger, metrics: new ActivatorMetrics() },
    current: (project) => project,
    requestWake: async ({ id }) => {
      if (failures > 0) {
        failures -= 1;
        throw new Error("away");
      }
      requested.push(id);
    },
    limits: { perOrganization: 3, total: 4, reserved: 1 },
  });
});

const project = (
  organization: string,
  id: string,
  change: Partial<SleepingProject> = {},
): SleepingProject => ({
  ...{ namespace: `slipway-org-${organization}`, id, uid: id, organization, sleepId: "s1" },
  ...change,
});
const wake = async (...projects: SleepingProject[]) => {
  for (const one of projects) {
    waker.wake(one, () => true, signal);
  }
  await settled();
};
const settled = () => new Promise((resolve) => setTimeout(resolve, 10));

describe("a wake", () => {
  it("is requested once a sleep, and of no project that runs or was woken by another activator", async () => {
    const asleep = project("acme", "a");
    waker.wake(asleep, () => true, signal);
    await wake(
      asleep,
      project("acme", "b", { sleepId: undefined }),
      project("acme", "c", { wakeRequested: "s1" }),
    );
    expect(requested).toEqual(["a"]);
  });

  it("that fails is requested again while a request waits for it", async () => {
    failures = 1;
    await wake(project("acme", "a"));
    expect(requested).toEqual([]);
    await clock.advance(1_000);
    await settled();
    expect(requested).toEqual(["a"]);
  });

  // Shows: docs/sleep.md#bounds: wakes of an organization (30 a minute)
  it("waits for its organization's share of a minute", async () => {
    await wake(...["a", "b", "c", "d"].map((id) => project("acme", id)));
    expect(requested).toEqual(["a", "b", "c"]);
    await clock.advance(60_000);
    await settled();
    expect(requested).toEqual(["a", "b", "c", "d"]);
  });

  // Shows: docs/sleep.md#bounds: and of all together (300 a minute)
  it("waits for a share of all, unless its organization has had few", async () => {
    await wake(
      ...["a", "b", "c"].map((id) => project("acme", id)),
      ...["d", "e"].map((id) => project("two", id)),
    );
    expect(requested).toEqual(["a", "b", "c", "d"]);
    await wake(project("three", "f"), project("three", "g"));
    expect(requested).toEqual(["a", "b", "c", "d", "f"]);
  });
});

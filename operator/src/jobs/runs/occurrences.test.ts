import type { Project } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleJob } from "../../../../test/kit/operator/projects.ts";
import type { JobState } from "./job-state.ts";
import { decideOccurrences } from "./occurrences.ts";

const day = (time: string) => `2026-03-01T${time}Z`;

function decideAt(now: string, job: JobState) {
  const project: Project = {
    ...exampleJob({ namespace: "slipway-org-a", name: "p" }, { job: { cron: "* * * * *" } }),
    status: { observedGeneration: 1, job },
  };
  const view = {
    project,
    now: new Date(day(now)),
    leaderSince: new Date(day("11:00:00")),
    windowMs: 120_000,
    hasJob: () => true,
    occupied: false,
    priced: true,
  };
  return decideOccurrences(view, (at) => `p-${at.getTime() / 60_000}`).state;
}

const followed = { schedule: "* * * * *", scheduledSince: day("11:00:30") };

// Shows: docs/jobs.md#clocks: occurrences ahead, written by such a leader, do not stop the schedule
test("occurrences decided ahead by a leader whose clock was wrong are due again", () => {
  const ahead = {
    ...followed,
    lastScheduledAt: day("18:01:00"),
    lastFinishedAt: day("18:00:20"),
    missed: 360,
  };
  const healed = decideAt("12:01:30", ahead);
  expect(healed).toMatchObject({ scheduledSince: "2026-03-01T12:01:30.000Z", missed: 360 });
  expect([healed.lastScheduledAt, healed.lastFinishedAt]).toEqual([undefined, undefined]);
  const next = decideAt("12:03:00", healed);
  expect(next).toMatchObject({ missed: 361, lastScheduledAt: "2026-03-01T12:02:00.000Z" });
});

test("a schedule that is followed since a moment ahead is followed from now on", () => {
  const healed = decideAt("12:01:30", { ...followed, scheduledSince: day("18:00:30") });
  expect(healed.scheduledSince).toBe("2026-03-01T12:01:30.000Z");
});

test("what clocks that differ a little explain stays", () => {
  const kept = decideAt("12:00:30", { ...followed, lastScheduledAt: day("12:01:00") });
  expect(kept).toMatchObject({ ...followed, lastScheduledAt: day("12:01:00") });
});

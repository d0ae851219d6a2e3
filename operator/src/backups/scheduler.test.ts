import { describe, expect, test } from "vitest";
import { dueOccurrence } from "./scheduler.ts";

const at = (text: string) => new Date(`2026-03-${text}:00Z`);

describe("the occurrence that is due", () => {
  test.each([
    ["none before its minute", "30 2 * * *", "02T02:30", "03T02:29", undefined],
    ["one at its minute", "30 2 * * *", "02T02:30", "03T02:30", "03T02:30"],
    ["none that was dealt with", "30 2 * * *", "03T02:30", "03T23:00", undefined],
    // Shows: docs/backups.md#over-v1: `PUT /v1/project/:id/backups/policy` | the whole policy; omitted
    ["the last of those that were missed", "30 2 * * *", "02T02:30", "09T12:00", "09T02:30"],
    ["the last of many", "* * * * *", "01T00:00", "28T00:00", "28T00:00"],
    ["the last of a rare schedule", "0 0 5 * *", "01T00:00", "20T00:00", "05T00:00"],
    ["none of a schedule that is never due", "0 0 31 2 *", "01T00:00", "28T00:00", undefined],
  ])("is %s", (_, cron, since, now, want) => {
    expect(dueOccurrence(cron, at(since), at(now))).toEqual(want && at(want));
  });
});

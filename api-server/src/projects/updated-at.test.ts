import { annotations } from "@slipway/crds";
import { expect, it } from "vitest";
import { specUpdatedAt } from "./updated-at.ts";

const spec = { "f:spec": { "f:name": {} } };
const status = { "f:status": { "f:phase": {} } };
const noted = (moment: string) => ({ [annotations.updatedAt]: moment });

it.each([
  ["the creation, when nothing else is known", {}, "2026-01-01T00:00:00.000Z"],
  [
    "the newest entry that owns part of the spec",
    {
      managedFields: [
        { time: "2026-01-02T00:00:00Z", fieldsV1: spec },
        { time: "2026-01-03T00:00:00Z", fieldsV1: spec },
        { time: "2026-01-04T00:00:00Z", fieldsV1: status },
      ],
    },
    "2026-01-03T00:00:00.000Z",
  ],
  [
    "the note of what was only removed",
    {
      annotations: noted("2026-01-03T00:00:00.250Z"),
      managedFields: [{ time: "2026-01-03T00:00:00Z", fieldsV1: spec }],
    },
    "2026-01-03T00:00:00.250Z",
  ],
  [
    "a later change through kubectl",
    {
      annotations: noted("2026-01-03T00:00:00.250Z"),
      managedFields: [{ time: "2026-01-03T00:00:01Z", fieldsV1: spec }],
    },
    "2026-01-03T00:00:01.000Z",
  ],
  ["no note that is no moment", { annotations: noted("yesterday") }, "2026-01-01T00:00:00.000Z"],
])("is %s", (_name, metadata, expected) => {
  expect(specUpdatedAt({ metadata: { creationTimestamp: "2026-01-01T00:00:00Z", ...metadata } })).toBe(
    expected,
  );
});

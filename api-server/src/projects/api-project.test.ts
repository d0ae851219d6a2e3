import type { Project } from "@slipway/crds";
import { expect, it } from "vitest";
import { specUpdatedAt } from "./api-project.ts";

const spec = { "f:spec": { "f:name": {} } };
const status = { "f:status": { "f:phase": {} } };
const removed = { updatedAt: "2026-01-03T00:00:00.250Z" };
const formerly = (moment: string) => ({ annotations: { "slipway.dev/updated-at": moment } });

it.each([
  ["the creation, when nothing else is known", {}, {}, "2026-01-01T00:00:00.000Z"],
  // Shows: docs/applications.md#conventions: timestamps are ISO 8601 in UTC
  [
    "the newest entry that owns part of the spec",
    {
      managedFields: [
        { time: "2026-01-02T00:00:00Z", fieldsV1: spec },
        { time: "2026-01-03T00:00:00Z", fieldsV1: spec },
        { time: "2026-01-04T00:00:00Z", fieldsV1: status },
      ],
    },
    {},
    "2026-01-03T00:00:00.000Z",
  ],
  [
    "no entry of the operator",
    {
      managedFields: [
        { manager: "slipway-api", time: "2026-01-02T00:00:00Z", fieldsV1: spec },
        { manager: "slipway-project", time: "2026-01-03T00:00:00Z", fieldsV1: spec },
        { manager: "slipway-build", time: "2026-01-03T00:00:00Z", fieldsV1: spec },
      ],
    },
    {},
    "2026-01-02T00:00:00.000Z",
  ],
  [
    "what /v1 has recorded of a field that was only removed",
    { managedFields: [{ time: "2026-01-03T00:00:00Z", fieldsV1: spec }] },
    removed,
    "2026-01-03T00:00:00.250Z",
  ],
  [
    "a later change through kubectl",
    { managedFields: [{ time: "2026-01-03T00:00:01Z", fieldsV1: spec }] },
    removed,
    "2026-01-03T00:00:01.000Z",
  ],
  [
    "what an earlier version has recorded in an annotation",
    formerly("2026-01-03T00:00:00.250Z"),
    {},
    "2026-01-03T00:00:00.250Z",
  ],
  ["no such annotation that is no moment", formerly("yesterday"), {}, "2026-01-01T00:00:00.000Z"],
])("is %s", (_name, metadata, more, expected) => {
  const project = { metadata: { name: "p1", creationTimestamp: "2026-01-01T00:00:00Z", ...metadata } };
  expect(specUpdatedAt({ ...project, spec: more as Project["spec"] })).toBe(expected);
});

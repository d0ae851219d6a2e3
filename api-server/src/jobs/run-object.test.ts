import type { Project } from "@slipway/crds";
import { expect, it } from "vitest";
import { exampleSpec, jobSpec } from "../../../test/kit/api-server/harness.ts";
import { newManualRunId } from "../ids.ts";
import { runObject, scheduledAtOf } from "./run-object.ts";

const at = new Date("2026-05-04T03:02:17.456Z");

it("a requested run is named after its minute, and no two have one name", () => {
  const minute = Math.floor(at.getTime() / 60_000);
  const ids = Array.from({ length: 50 }, () => newManualRunId("pjob", at));
  expect(new Set(ids).size).toBe(50);
  for (const id of ids) {
    expect(id).toMatch(new RegExp(`^pjob-${minute}-[a-z0-9]{10}$`));
  }
});

it("a run is of the minute that its id names, also when it is created later", () => {
  const id = newManualRunId("pjob", at);
  expect(scheduledAtOf(id, at)).toEqual(at);
  expect(scheduledAtOf(id, new Date("2026-05-04T03:09:00Z"))).toEqual(new Date("2026-05-04T03:02:00Z"));
});

it("a requested run belongs to its project and names its caller", () => {
  const project = {
    metadata: { name: "pjob", namespace: "slipway-org-acme", uid: "u-1" },
    spec: { ...exampleSpec, ...jobSpec },
  } as Project;
  const id = newManualRunId("pjob", at);
  expect(runObject(project, id, "acme", at)).toMatchObject({
    metadata: {
      name: id,
      namespace: "slipway-org-acme",
      labels: { "slipway.dev/project": "pjob", "slipway.dev/organization": "acme" },
      ownerReferences: [{ kind: "Project", name: "pjob", uid: "u-1", controller: true }],
    },
    spec: { projectRef: { name: "pjob" }, trigger: "manual", scheduledAt: at.toISOString() },
  });
});

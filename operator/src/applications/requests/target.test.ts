import type { Project, ProjectStatus } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleProject } from "../../../../test/kit/operator/projects.ts";
import { type RequestScaling, reportRequestScaling } from "./target.ts";

const autoscaling = { enabled: true, maxInstances: 3, requestsPerSecondTarget: 10 };
const scaled = exampleProject({ namespace: "slipway-org-acme", name: "pshop" }, { autoscaling });
const decided = { instances: 2, requestsPerSecond: 15 };
const deciding = (decision?: typeof decided): RequestScaling => ({
  leastOf: () => undefined,
  decisionOf: () => decision,
});

/** The status after a reconcile, and the Events of it. */
function report(project: Project, scaling: RequestScaling | undefined, before?: typeof decided) {
  const status = { requestScaling: before } as ProjectStatus;
  const events: string[] = [];
  reportRequestScaling(project, scaling, { status, event: (_, reason) => void events.push(reason) });
  return [status.requestScaling, events];
}

test("what was decided stays until it is another decision, also under an operator that has decided nothing", () => {
  expect(report(scaled, deciding())).toEqual([undefined, []]);
  expect(report(scaled, deciding(), decided)).toEqual([decided, []]);
  const next = { instances: 3, requestsPerSecond: 27 };
  expect(report(scaled, deciding(next), decided)).toEqual([next, []]);
});

// Shows: docs/applications.md#scaling-by-requests: where requests are no longer counted
test("an Event says once that requests of a project are no longer counted", () => {
  expect(report(scaled, undefined, decided)).toEqual([undefined, ["RequestsNotCounted"]]);
  expect(report(scaled, undefined)).toEqual([undefined, []]);
  const others = { ...scaled, spec: { ...scaled.spec, autoscaling: { enabled: true, maxInstances: 3 } } };
  expect(report(others, undefined, decided)).toEqual([undefined, []]);
  expect(report(others, deciding(), decided)).toEqual([undefined, []]);
});

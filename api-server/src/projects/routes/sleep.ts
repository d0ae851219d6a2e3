import { findHttpPlan, type ProjectSpec, patchSleepBody } from "@slipway/crds";
import { defineProjectRoute } from "../../http/route.ts";
import { requireTypeWith } from "../api-project.ts";
import { changeProject } from "../change.ts";
import { sleepFailure } from "../spec-errors.ts";
import { messageOnly } from "./schemas.ts";

/** The spec with another time after which it sleeps; null for never. Pure. */
export function withSleep(spec: ProjectSpec, seconds: number | null): ProjectSpec {
  const { sleepAfterSeconds: _before, ...rest } = spec;
  return seconds === null ? rest : { ...rest, sleepAfterSeconds: seconds };
}

export const updateSleep = defineProjectRoute({
  operationId: "updateProjectSleep",
  method: "PATCH",
  path: "/v1/project/:id/sleep",
  summary: "Change after how long without a request an application sleeps",
  description:
    "Of HTTP projects whose plan allows it; where the plan's own time is longer, that counts. Wakes one that sleeps. It is no deployment.",
  tags: ["Settings"],
  body: patchSleepBody,
  responses: { 200: { description: "In effect in the background.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project, body: { sleep_after_seconds: seconds } }, services) => {
    requireTypeWith(project, "sleepAfterSeconds");
    await changeProject(project, services, (spec) => withSleep(spec, seconds), {
      prepare: async ({ spec }) => {
        const plan = findHttpPlan(services.catalog.current, spec.plan);
        const refused = plan && sleepFailure(spec, plan);
        if (refused) {
          throw refused;
        }
      },
    });
    return { status: 200, body: { status: "success", message: "sleep updated" } };
  },
});

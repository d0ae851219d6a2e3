import { type ProjectSpec, patchPreDeployBody } from "@slipway/crds";
import type { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { requireTypeWith } from "../api-project.ts";
import { changeProject } from "../change.ts";
import { messageOnly } from "./schemas.ts";

/** The spec with another pre-deploy command or time limit of it; null removes one, and what is absent stays. Pure. */
export function withPreDeploy(spec: ProjectSpec, body: z.output<typeof patchPreDeployBody>): ProjectSpec {
  const { preDeployCommand, preDeployTimeoutSeconds, preDeploySkip, ...rest } = spec;
  const { pre_deploy_command: command = preDeployCommand, pre_deploy_timeout_seconds: timeout } = body;
  if (command === null) {
    return { ...rest, ...(timeout ? { preDeployTimeoutSeconds: timeout } : {}) };
  }
  const seconds = timeout === undefined ? preDeployTimeoutSeconds : timeout;
  return {
    ...rest,
    ...(command === undefined ? {} : { preDeployCommand: command }),
    ...(seconds ? { preDeployTimeoutSeconds: seconds } : {}),
    ...(preDeploySkip === undefined ? {} : { preDeploySkip }),
  };
}

export const updatePreDeploy = defineProjectRoute({
  operationId: "updateProjectPreDeploy",
  method: "PATCH",
  path: "/v1/project/:id/pre-deploy",
  summary: "Change the command that runs before each deployment",
  description:
    "Of HTTP projects and workers. It runs before the next deployment, which this is not: only where the command of the newest deployment has not " +
    "succeeded, the other one runs in its place.",
  tags: ["Settings"],
  body: patchPreDeployBody,
  responses: { 200: { description: "It runs before the next deployment.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project, body }, services) => {
    requireTypeWith(project, "preDeployCommand");
    await changeProject(project, services, (spec) => withPreDeploy(spec, body));
    return { status: 200, body: { status: "success", message: "pre-deploy command updated" } };
  },
});

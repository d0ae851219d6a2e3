import { patchEnvsBody } from "@slipway/crds";
import { defineProjectRoute } from "../../http/route.ts";
import { replaceEnvironment } from "../envs/replace.ts";
import { requireTypeWith } from "../require-type.ts";
import { ENVIRONMENT_BODY_LIMIT, messageOnly } from "./schemas.ts";

export const updateEnvs = defineProjectRoute({
  operationId: "updateProjectEnvs",
  method: "PATCH",
  path: "/v1/project/:id/envs",
  summary: "Replace a project's environment variables",
  description:
    "The list is complete: a variable that is absent from it is removed, Secrets that kubectl gave included. All change in one deployment.",
  tags: ["Settings"],
  body: patchEnvsBody,
  responses: {
    200: { description: "Replaced; a deployment starts in the background.", schema: messageOnly },
  },
  refusals: [409],
  bodyLimit: ENVIRONMENT_BODY_LIMIT,
  handler: async ({ project, body }, services) => {
    requireTypeWith(project, "envsFrom");
    await replaceEnvironment(project, body.envs, services);
    return { status: 200, body: { status: "success", message: "environment variables updated" } };
  },
});

import { patchDescriptionBody } from "@slipway/crds";
import { defineProjectRoute } from "../../http/route.ts";
import { changeProject } from "../change.ts";
import { messageOnly } from "./schemas.ts";

export const updateDescription = defineProjectRoute({
  operationId: "updateProjectDescription",
  method: "PATCH",
  path: "/v1/project/:id/description",
  summary: "Change a project's description",

  tags: ["Settings"],
  body: patchDescriptionBody,
  responses: { 200: { description: "Changed.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project, body: { description } }, services) => {
    await changeProject(project, services, (spec) => ({ ...spec, description }));
    return { status: 200, body: { status: "success", message: "description updated" } };
  },
});

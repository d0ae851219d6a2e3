import { patchNameBody } from "@slipway/crds";
import { waitForFirstDomain } from "../../domains/first.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { changeProject } from "../change.ts";
import { messageOnly } from "./schemas.ts";

export const updateName = defineProjectRoute({
  operationId: "updateProjectName",
  method: "PATCH",
  path: "/v1/project/:id/name",
  summary: "Change a project's name",
  description: "The default domain, which was made from the first name, stays as it is.",
  tags: ["Settings"],
  body: patchNameBody,
  responses: { 200: { description: "Changed.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project, body: { name } }, services) => {
    await waitForFirstDomain(project, services);
    await changeProject(project, services, (spec) => ({ ...spec, name }));
    return { status: 200, body: { status: "success", message: "name updated" } };
  },
});

import { patchNameBody } from "@slipway/crds";
import { defineRoute } from "../../../http/route.ts";
import type { ApiProject } from "../../../projects/api-project.ts";
import { changeProject } from "../../../projects/change.ts";
import { waitForFirstDomain } from "../../../projects/domains/first.ts";
import { messageOnly } from "./schemas.ts";

export const updateName = defineRoute({
  operationId: "updateProjectName",
  method: "PATCH",
  path: "/v1/project/:id/name",
  summary: "Change a project's name",
  description: "The default domain, which was made from the first name, stays as it is.",
  tags: ["Settings"],
  body: patchNameBody,
  responses: { 200: { description: "Changed.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project: given, body: { name } }, services) => {
    const project = given as ApiProject;
    await waitForFirstDomain(project, services);
    await changeProject(project, services, (spec) => ({ ...spec, name }));
    return { status: 200, body: { status: "success", message: "name updated" } };
  },
});

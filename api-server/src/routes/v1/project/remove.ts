import type { Principal } from "../../../auth/principal.ts";
import { defineRoute } from "../../../http/route.ts";
import { deleteProject, refuseMissing } from "../../../projects/deletion.ts";
import { messageOnly } from "./schemas.ts";

export const remove = defineRoute({
  operationId: "deleteProject",
  method: "DELETE",
  path: "/v1/project/:id",
  summary: "Delete a project for good",
  description: "200 means that nothing of the project runs any more and that its name and domains are free.",
  tags: ["Projects"],
  responses: { 200: { description: "Deleted.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ principal, project, params }, services) => {
    const { organizationId } = principal as Principal;
    const { id } = params as { id: string };
    if (!project) return refuseMissing(organizationId, id, services);
    await deleteProject(project, services);
    return { status: 200, body: { status: "success", message: "project deleted" } };
  },
});

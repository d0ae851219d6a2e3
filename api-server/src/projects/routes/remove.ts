import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { defineRoute } from "../../http/route.ts";
import { deleteProject, refuseMissing } from "../deletion.ts";
import { messageOnly, success } from "./schemas.ts";

export const remove = defineRoute({
  operationId: "deleteProject",
  method: "DELETE",
  path: "/v1/project/:id",
  summary: "Delete a project for good",
  description: "200 means that nothing of the project runs any more and that its name and domains are free.",
  tags: ["Projects"],
  responses: {
    200: { description: "Deleted.", schema: messageOnly },
    202: {
      description: "A Valkey service; it is deleted in the background.",
      schema: success({
        message: z.string(),
        data: z.object({ project_id: z.string(), status: z.literal("deleting") }),
      }),
    },
  },
  refusals: [409, 503],
  handler: async ({ principal, project, params }, services) => {
    const { organizationId } = principal as Principal;
    const { id } = params as { id: string };
    if (!project) {
      return refuseMissing(organizationId, id, services);
    }
    if ((await deleteProject(project, services)) === "deleting") {
      const deleting = { project_id: id, status: "deleting" };
      return {
        status: 202,
        body: { status: "success", message: "the service is being deleted", data: deleting },
      };
    }
    return { status: 200, body: { status: "success", message: "project deleted" } };
  },
});

import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { defineProjectRoute, defineRoute } from "../../http/route.ts";
import { deleteProject, pauseProject, refuseMissing, resumeProject, statusOnceSeen } from "../lifecycle.ts";
import { lifecycleSchema, messageOnly, success } from "./schemas.ts";

export const pause = defineProjectRoute({
  operationId: "pauseProject",
  method: "POST",
  path: "/v1/project/:id/pause",
  summary: "Stop a project without deleting it",
  description: "No instance runs and its data is kept. A project that is paused stays so.",
  tags: ["Lifecycle"],
  responses: {
    200: { description: "Paused; its instances end in the background.", schema: lifecycleSchema },
  },
  refusals: [409],
  handler: async ({ project }, services) => {
    const paused = await pauseProject(project, services);
    const data = { project_id: paused.id, status: await statusOnceSeen(paused, services, "stopped") };
    return { status: 200, body: { status: "success", message: "project paused", data } };
  },
});

export const resume = defineProjectRoute({
  operationId: "resumeProject",
  method: "POST",
  path: "/v1/project/:id/resume",
  summary: "Start a paused project again",
  description: "A project that runs goes on.",
  tags: ["Lifecycle"],
  responses: {
    200: { description: "Resumed; its instances start in the background.", schema: lifecycleSchema },
  },
  refusals: [402, 409],
  handler: async ({ project }, services) => {
    const resumed = await resumeProject(project, services);
    const data = { project_id: resumed.id, status: await statusOnceSeen(resumed, services) };
    return { status: 200, body: { status: "success", message: "project resumed", data } };
  },
});

export const remove = defineRoute({
  operationId: "deleteProject",
  method: "DELETE",
  path: "/v1/project/:id",
  summary: "Delete a project",
  description:
    "200 means that nothing of the project runs any more and that its name and domains are free. Where its plan retains " +
    "the volumes of deleted projects, it can be undeleted for some hours.",
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

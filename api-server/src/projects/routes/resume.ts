import { defineProjectRoute } from "../../http/route.ts";
import { resumeProject, statusOnceSeen } from "../lifecycle.ts";
import { lifecycleSchema } from "./schemas.ts";

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

import { defineProjectRoute } from "../../http/route.ts";
import { pauseProject, statusOnceSeen } from "../lifecycle.ts";
import { lifecycleSchema } from "./schemas.ts";

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

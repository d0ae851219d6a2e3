import { type Deployment, listDeployments } from "@slipway/ledger";
import { z } from "zod";
import { defineRoute } from "../../../http/route.ts";
import { askLedger } from "../../../ledger-call.ts";
import type { ApiProject } from "../../../projects/api-project.ts";
import { success } from "./schemas.ts";

const deploymentSchema = z.object({
  id: z.string(),
  project_id: z.string(),
  updated_image: z.boolean().describe("Whether the image is another than the deployment's before."),
  created_at: z.string(),
  status: z.enum(["in_progress", "succeeded", "failed", "superseded"]),
  image: z.string().optional(),
  finished_at: z.string().optional(),
  message: z.string().describe("Why it failed.").optional(),
});

export const deployments = defineRoute({
  operationId: "listProjectDeployments",
  method: "GET",
  path: "/v1/project/:id/historic/deployments",
  summary: "List the deployments of the current month",
  description: "Those created since the month began, by the server's clock in UTC; the newest first.",
  tags: ["Lifecycle"],
  responses: {
    200: { description: "The deployments.", schema: success({ data: z.array(deploymentSchema) }) },
  },
  handler: async ({ project }, { ledger, now }) => {
    const { organizationId, id: projectId } = project as ApiProject;
    const month = monthOf(now());
    const rows = await askLedger(() => listDeployments(ledger, { organizationId, projectId, ...month }));
    return { status: 200, body: { status: "success", data: rows.map(deploymentData) } };
  },
});

/** The calendar month in UTC that a moment lies in, up to where the next begins. */
export function monthOf(moment: Date): { from: Date; to: Date } {
  const [year, month] = [moment.getUTCFullYear(), moment.getUTCMonth()];
  return { from: new Date(Date.UTC(year, month)), to: new Date(Date.UTC(year, month + 1)) };
}

/** What is not known of a deployment is left out. */
function deploymentData(row: Deployment): z.output<typeof deploymentSchema> {
  return {
    id: row.id,
    project_id: row.project_id,
    updated_image: row.updated_image,
    created_at: row.created_at.toISOString(),
    status: row.status,
    ...(row.image === null ? {} : { image: row.image }),
    ...(row.finished_at === null ? {} : { finished_at: row.finished_at.toISOString() }),
    ...(row.message === null ? {} : { message: row.message }),
  };
}

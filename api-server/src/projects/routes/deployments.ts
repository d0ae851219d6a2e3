import { rollbackBody } from "@slipway/crds";
import { countDeployments, type Deployment, listDeployments } from "@slipway/ledger";
import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { wholeNumber } from "../../http/validate.ts";
import { withLedgerErrors } from "../../ledger/availability.ts";
import { rollBack } from "../rollback.ts";
import { preDeployOf } from "../view.ts";
import { pagination, preDeploySchema, success } from "./schemas.ts";

const deploymentSchema = z.object({
  id: z.string(),
  project_id: z.string(),
  updated_image: z.boolean().describe("Whether the image is another than the deployment's before."),
  created_at: z.string(),
  status: z.enum(["in_progress", "succeeded", "failed", "superseded"]),
  image: z.string().optional(),
  finished_at: z.string().optional(),
  message: z.string().describe("Why it failed.").optional(),
  pre_deploy: preDeploySchema.optional(),
});

const MAX_LIMIT = 1_000;

export const deployments = defineProjectRoute({
  operationId: "listProjectDeployments",
  method: "GET",
  path: "/v1/project/:id/historic/deployments",
  summary: "List the deployments of the current month",
  description:
    "Those created since the month began, by the server's clock in UTC; the newest first, 1,000 a page.",
  query: z.strictObject({
    page: wholeNumber(1, 1_000_000).default(1),
    limit: wholeNumber(1, MAX_LIMIT).default(MAX_LIMIT),
  }),
  tags: ["Lifecycle"],
  responses: {
    200: {
      description: "The deployments.",
      schema: success({
        data: z.array(deploymentSchema),
        pagination,
      }),
    },
  },
  handler: async ({ principal, project, query: { page, limit } }, { ledger, now }) => {
    const filter = {
      ...project.identity,
      ...monthOf(now()),
      limit,
      offset: (page - 1) * limit,
    };
    const rows = await withLedgerErrors(() => listDeployments(ledger, filter));
    // A first page that is not full is all there is.
    const isAll = page === 1 && rows.length < limit;
    const total = isAll ? rows.length : await withLedgerErrors(() => countDeployments(ledger, filter));
    const shown = { page, limit, total, pages: Math.ceil(total / limit) };
    const withLogs = (principal as Principal).grants.onProject("project.logs.read", project.id);
    const listed = project.resource.status?.deployments ?? [];
    const data = rows.map((row) => {
      const deployment = listed.find(({ id }) => id === row.id);
      return { ...deploymentData(row), ...preDeployOf(deployment, withLogs) };
    });
    return { status: 200, body: { status: "success", data, pagination: shown } };
  },
});

/** The calendar month in UTC of a moment, up to where the next begins. */
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

export const rollback = defineProjectRoute({
  operationId: "rollbackProject",
  method: "POST",
  path: "/v1/project/:id/rollback",
  summary: "Deploy the settings of an earlier deployment",
  description:
    "Its image (the very manifest that ran), port, environment, health check, plan and payment mode. Everything else " +
    "stays as it is, and the pre-deploy command runs only with run_pre_deploy_command. The newest ten deployments can be rolled back to. What it changes needs its own permission, too: " +
    "project.image.update, project.envs.update, project.plan.update; references to other projects what writing them needs.",
  tags: ["Lifecycle"],
  body: rollbackBody,
  responses: {
    200: {
      description: "A new deployment starts in the background.",
      schema: success({
        message: z.string(),
        data: z.object({
          project_id: z.string(),
          deployment_id: z.string().describe("The deployment whose settings it has."),
        }),
      }),
    },
  },
  refusals: [402, 409],
  handler: async ({ principal, project, body }, services) => {
    const { id } = project;
    const { grants } = principal as Principal;
    const runPreDeploy = body.run_pre_deploy_command ?? false;
    await rollBack(project, body.deployment_id, grants, services, { runPreDeploy });
    const data = { project_id: id, deployment_id: body.deployment_id };
    return { status: 200, body: { status: "success", message: "a new deployment starts", data } };
  },
});

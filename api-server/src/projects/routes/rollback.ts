import { rollbackBody } from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { rollBack } from "../rollback.ts";
import { success } from "./schemas.ts";

export const rollback = defineProjectRoute({
  operationId: "rollbackProject",
  method: "POST",
  path: "/v1/project/:id/rollback",
  summary: "Deploy the settings of an earlier deployment",
  description:
    "Its image (the very manifest that ran), port, environment, health check, plan and payment mode. Everything else " +
    "stays as it is. The newest ten deployments can be rolled back to. What it changes needs its own permission, too: " +
    "project.image.update, project.envs.update, project.plan.update.",
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
    await rollBack(project, body.deployment_id, grants, services);
    const data = { project_id: id, deployment_id: body.deployment_id };
    return { status: 200, body: { status: "success", message: "a new deployment starts", data } };
  },
});

import { patchExposureBody } from "@slipway/crds";
import { z } from "zod";
import { waitUntilExposed, waitUntilReleased } from "../../domains/release.ts";
import { withExposure } from "../../domains/spec.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { changeProject } from "../change.ts";
import { requireType } from "../require-type.ts";
import { success } from "./schemas.ts";

export const updateExposure = defineProjectRoute({
  operationId: "updateProjectExposure",
  method: "PATCH",
  path: "/v1/project/:id/exposure",
  summary: "Make an HTTP project public or private",
  description:
    "Private removes the public route, the subdomain and the custom domains, and 200 means that they are free for others. " +
    "Public provides the default domain again.",
  tags: ["Settings"],
  body: patchExposureBody,
  responses: {
    200: {
      description: "Changed, or as it was already.",
      schema: success({
        message: z.string(),
        exposure: z.enum(["public", "private"]),
        domain: z.string().describe("Default domain; empty for private projects."),
        custom_domains: z.array(z.string()),
      }),
    },
  },
  refusals: [409, 503],
  handler: async ({ project, body: { exposure } }, services) => {
    requireType(project, ["http"]);
    const change = await changeProject(project, services, (spec, live) => withExposure(spec, exposure, live));
    await waitUntilReleased(change.project, services);
    await waitUntilExposed(change.project, services);
    const { resource, domain } = change.project;
    return {
      status: 200,
      body: {
        status: "success",
        message: change.changed ? `the project becomes ${exposure}` : `the project is ${exposure} already`,
        exposure,
        domain: domain ?? "",
        custom_domains: resource.spec.customDomains ?? [],
      },
    };
  },
});

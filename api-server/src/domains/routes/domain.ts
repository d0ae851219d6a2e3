import { patchDomainBody } from "@slipway/crds";
import { defineProjectRoute } from "../../http/route.ts";
import { changeProject } from "../../projects/change.ts";
import { requireType } from "../../projects/require-type.ts";
import { messageOnly } from "../../projects/routes/schemas.ts";
import { waitUntilReleased } from "../release.ts";
import { withSubdomain } from "../spec.ts";

export const updateDomain = defineProjectRoute({
  operationId: "updateProjectDomain",
  method: "PATCH",
  path: "/v1/project/:id/domain",
  summary: "Choose the subdomain of a public HTTP project",
  description:
    "The subdomain is reserved exactly as given. 200 means that the old one is free for others; the route of the new " +
    "one is put in place in the background.",
  tags: ["Settings"],
  body: patchDomainBody,
  responses: { 200: { description: "Changed.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project, body }, services) => {
    requireType(project, ["http"]);
    const change = await changeProject(
      project,
      services,
      (spec) => withSubdomain(spec, body.domain, services),
      { fields: { subdomain: "domain" } },
    );
    await waitUntilReleased(change.project, services);
    return { status: 200, body: { status: "success", message: "domain updated" } };
  },
});

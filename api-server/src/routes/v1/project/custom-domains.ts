import { patchCustomDomainsBody } from "@slipway/crds";
import { z } from "zod";
import { defineRoute } from "../../../http/route.ts";
import type { ApiProject } from "../../../projects/api-project.ts";
import { changeProject } from "../../../projects/change.ts";
import { waitUntilReleased } from "../../../projects/domains/release.ts";
import { withCustomDomains } from "../../../projects/domains/spec.ts";
import { requireType } from "../../../projects/require-type.ts";
import { customDomainSetupSchema, success } from "./schemas.ts";

export const updateCustomDomains = defineRoute({
  operationId: "updateProjectCustomDomains",
  method: "PATCH",
  path: "/v1/project/:id/custom-domains",
  summary: "Set the custom domains of a public HTTP project",
  description:
    "The complete list: domains that are absent from it are removed, and at most one may be new. A new one is reserved at " +
    "once; traffic follows when the TXT record in custom_domain_setup proves that it is yours.",
  tags: ["Settings"],
  body: patchCustomDomainsBody,
  responses: {
    200: {
      description: "Changed.",
      schema: success({
        message: z.string(),
        custom_domains: z.array(z.string()),
        custom_domain_setup: z.array(customDomainSetupSchema),
      }),
    },
  },
  refusals: [409, 503],
  handler: async ({ project: given, body }, services) => {
    const project = given as ApiProject;
    requireType(project, ["http"]);
    const { organizationId, id: name } = project;
    const change = await changeProject(
      project,
      services,
      (spec) => withCustomDomains(spec, body.custom_domains, services),
      {
        prepare: ({ spec }) => {
          const amount = spec.customDomains?.length ?? 0;
          return services.usage.reserve(organizationId, [{ kind: "customDomains", name, amount }]);
        },
      },
    );
    await waitUntilReleased(change.project, services);
    const { resource, customDomainSetup } = change.project;
    return {
      status: 200,
      body: {
        status: "success",
        message: "custom domains updated",
        custom_domains: resource.spec.customDomains ?? [],
        custom_domain_setup: customDomainSetup,
      },
    };
  },
});

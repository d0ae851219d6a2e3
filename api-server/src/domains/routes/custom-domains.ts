import { type Project, patchCustomDomainsBody } from "@slipway/crds";
import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { changeProject } from "../../projects/change.ts";
import { requireType } from "../../projects/require-type.ts";
import { customDomainSetupSchema, success } from "../../projects/routes/schemas.ts";
import { waitUntilReleased } from "../release.ts";
import { withCustomDomains } from "../spec.ts";

export const updateCustomDomains = defineProjectRoute({
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
  handler: async ({ project, body }, services) => {
    requireType(project, ["http"]);
    const { organizationId, id: name } = project;
    const reserve = (amount: number) =>
      services.usage.reserve(organizationId, [{ kind: "customDomains", name, amount }]);
    const countOf = ({ spec }: Project) => spec.customDomains?.length ?? 0;
    const change = await changeProject(
      project,
      services,
      (spec) => withCustomDomains(spec, body.custom_domains, services),
      // What the project has now stays reserved until the change is written: it may still fail.
      { prepare: (wanted, live) => reserve(Math.max(countOf(wanted), countOf(live))) },
    );
    const left = countOf(change.project.resource);
    if (left < countOf(change.before)) {
      // The change is done; the operator corrects what is reserved too much.
      await reserve(left).catch(() => undefined);
    }
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

import { type Project, patchCustomDomainsBody, patchDomainBody, patchExposureBody } from "@slipway/crds";
import { z } from "zod";
import { defineProjectRoute } from "../http/route.ts";
import { requireType } from "../projects/api-project.ts";
import { changeProject } from "../projects/change.ts";
import { customDomainSetupSchema, messageOnly, success } from "../projects/routes/schemas.ts";
import { withCustomDomains, withExposure, withSubdomain } from "./spec.ts";
import { waitUntilExposed, waitUntilReleased } from "./wait.ts";

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

import { patchEnvsBody } from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { checkReferences } from "../../references/references.ts";
import { requireTypeWith } from "../api-project.ts";
import { readEnvironment, replaceEnvironment } from "../envs.ts";
import { ENVIRONMENT_BODY_LIMIT, messageOnly, success } from "./schemas.ts";

export const readEnvs = defineProjectRoute({
  operationId: "readProjectEnvs",
  method: "GET",
  path: "/v1/project/:id/envs",
  summary: "Read a project's environment variables, in clear text",
  description:
    "As they are in the cluster now, those included that were given as Secrets with kubectl. In the order in which they " +
    "were sent; others follow by name. References to other projects as they were sent, never their values.",
  tags: ["Settings"],
  responses: {
    200: {
      description: "The environment variables.",
      schema: success({ data: z.array(z.object({ name: z.string(), value: z.string() })) }),
    },
  },
  refusals: [400, 409],
  // Each reads megabytes of Secrets.
  maxConcurrent: 8,
  handler: async ({ project }, { kube, environments }) => {
    requireTypeWith(project, "envsFrom");
    const { resource } = project;
    const { namespace, name } = resource.metadata;
    const data = await environments.read(`${namespace}/${name}`, () => readEnvironment(kube, resource));
    return { status: 200, headers: { "cache-control": "no-store" }, body: { status: "success", data } };
  },
});

export const updateEnvs = defineProjectRoute({
  operationId: "updateProjectEnvs",
  method: "PATCH",
  path: "/v1/project/:id/envs",
  summary: "Replace a project's environment variables",
  description:
    "The list is complete: a variable that is absent from it is removed, Secrets that kubectl gave included. All change in one deployment. " +
    `Of http, worker and job projects a value may have references to other projects, such as \${project:shop-db.connection_string}; $\${project: is the text itself.`,
  tags: ["Settings"],
  body: patchEnvsBody,
  responses: {
    200: { description: "Replaced; a deployment starts in the background.", schema: messageOnly },
  },
  refusals: [409],
  bodyLimit: ENVIRONMENT_BODY_LIMIT,
  handler: async ({ principal, project, body }, services) => {
    requireTypeWith(project, "envsFrom");
    const { organizationId, resource: self } = project;
    const { grants } = principal as Principal;
    const referrer = { organizationId, type: self.spec.type, grants, self };
    const bound = await checkReferences(body.envs, referrer, services);
    await replaceEnvironment(project, body.envs, services, bound);
    return { status: 200, body: { status: "success", message: "environment variables updated" } };
  },
});

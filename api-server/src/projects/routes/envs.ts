import {
  isEnvSecretName,
  ownVariables,
  type Project,
  patchEnvsBody,
  type SourcedVariable,
  variableSource,
} from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { failures } from "../../errors/catalog.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { checkReferences } from "../../references/references.ts";
import { READ_GROUPS } from "../../variable-groups/attach.ts";
import { requireTypeWith } from "../api-project.ts";
import { replaceEnvironment } from "../envs.ts";
import { readEnvironment, withoutHidden } from "../read-envs.ts";
import { ENVIRONMENT_BODY_LIMIT, messageOnly, success } from "./schemas.ts";

export const readEnvs = defineProjectRoute({
  operationId: "readProjectEnvs",
  method: "GET",
  path: "/v1/project/:id/envs",
  summary: "Read a project's environment variables, in clear text",
  description:
    "As they are in the cluster now, those included that were given as Secrets with kubectl. In the order in which they " +
    "were sent; others follow by name. References to other projects as they were sent, never their values. `source` says where each comes from " +
    "where not all are the project's own; without `organization.variable-groups.read` those of variable groups have no value.",
  tags: ["Settings"],
  responses: {
    200: {
      description: "The environment variables.",
      schema: success({
        data: z.array(z.object({ name: z.string(), value: z.string(), source: variableSource.optional() })),
      }),
    },
  },
  refusals: [400, 409],
  // Each reads megabytes of Secrets.
  maxConcurrent: 8,
  handler: async ({ principal, project }, { kube, environments }) => {
    requireTypeWith(project, "envsFrom");
    const { resource } = project;
    const { namespace, name } = resource.metadata;
    const found = await environments.read(`${namespace}/${name}`, () => readEnvironment(kube, resource));
    const data = withoutHidden(found, (principal as Principal).grants.onOrganization(READ_GROUPS));
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
    "A variable whose `source` is a variable group or a Secret stays as it is, so that a list may be sent as it was read. " +
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
    const own = ownVariables(body.envs);
    const kept = keptSecrets(body.envs, self);
    const bound = await checkReferences(own, referrer, services);
    await replaceEnvironment(project, own, services, bound, kept);
    return { status: 200, body: { status: "success", message: "environment variables updated" } };
  },
});

/** The Secrets of others that a list still has variables of. @throws Failure 400 for a source that the project does not have */
function keptSecrets(
  variables: readonly SourcedVariable[],
  { metadata, spec: { envsFrom = [], variableGroups = [] } }: Project,
): string[] {
  // The project's own Secrets are replaced as a whole: one that stayed would keep what the list leaves out.
  const foreign = envsFrom.filter(
    ({ name, references }) => references === undefined && !isEnvSecretName(metadata.name, name),
  );
  const isKnown = ({ source }: SourcedVariable): boolean =>
    source?.type === "secret"
      ? foreign.some(({ name }) => name === source.name)
      : source?.type !== "group" || variableGroups.includes(source.id);
  const unknown = variables.flatMap((one, index) =>
    isKnown(one) ? [] : [{ field: `envs[${index}].source`, message: "the project has no such source" }],
  );
  if (unknown.length > 0) {
    throw failures.validation(unknown);
  }
  return variables.flatMap(({ source }) => (source?.type === "secret" ? [source.name] : []));
}

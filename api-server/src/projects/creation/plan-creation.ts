import { type CreateProjectRequest, organizationNamespace, type ProjectSpec } from "@slipway/crds";
import { envShards } from "./env-secrets.ts";
import { envSecret, firstHostname, type Identity, imagePullSecret, projectObject } from "./objects.ts";
import { pullSecret } from "./pull-secret.ts";
import type { CreationPlan } from "./write.ts";

/**
 * Everything that one creation writes, from the request and the id alone: the same request with the same id gives the
 * same plan, so it can be written again. Pure.
 */
export function planCreation(request: CreateProjectRequest, identity: Identity, zone: string): CreationPlan {
  const { projectId, organizationId } = identity;
  const shards = envShards(projectId, request.envs);
  const { image } = request.spec;
  const login = request.imageAuthentication;
  const pull =
    image && login?.auth_type === "username_password" ? pullSecret(projectId, image.url, login) : undefined;
  const spec: ProjectSpec = {
    ...request.spec,
    ...(shards.length > 0 ? { envsFrom: shards.map(({ name }) => ({ name })) } : {}),
    ...(image && pull ? { image: { ...image, pullSecretRef: { name: pull.name } } } : {}),
  };
  const project = projectObject(spec, identity);
  return {
    organizationId,
    namespace: organizationNamespace(organizationId),
    secrets: [
      ...shards.map((shard) => envSecret(shard, identity)),
      ...(pull ? [imagePullSecret(pull, identity)] : []),
    ],
    project,
    hostname: firstHostname(project, zone),
  };
}

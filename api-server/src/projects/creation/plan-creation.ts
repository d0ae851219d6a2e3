import {
  type CreateProjectRequest,
  type DatabaseCredentials,
  type EngineName,
  isDatabaseType,
  organizationNamespace,
  type ProjectSpec,
} from "@slipway/crds";
import { hostnamesOf } from "../claims.ts";
import {
  type AccountsSecret,
  accountsSecret,
  awsSecret,
  envSecret,
  type Identity,
  imagePullSecret,
  projectObject,
  type Secret,
} from "./objects.ts";
import { awsRegistrySecret, envShards, envSources, pullSecret } from "./secrets.ts";
import type { CreationPlan } from "./write.ts";

export interface CreationContext {
  /** Zone of default domains. */
  zone: string;
  /** Passwords for a new database. */
  newCredentials: (engine: EngineName) => DatabaseCredentials;
}

/**
 * Everything that one creation writes. Names come from the request and the id alone: the same request with the same id
 * gives the same plan but for passwords, so it can be written again, and existing passwords stay. Pure.
 */
export function planCreation(
  request: CreateProjectRequest,
  identity: Identity,
  { zone, newCredentials }: CreationContext,
): CreationPlan {
  const { projectId, organizationId } = identity;
  const shards = envShards(projectId, request.envs);
  const login = imageLogin(request, identity);
  const { type } = request.spec;
  const secrets: (Secret | AccountsSecret)[] = shards.map((shard) => envSecret(shard, identity));
  if (login) {
    secrets.push(login.secret);
  }
  if (isDatabaseType(type)) {
    secrets.push(accountsSecret(newCredentials(type), identity));
  }
  const spec: ProjectSpec = {
    ...request.spec,
    ...(shards.length > 0 ? { envsFrom: envSources(shards, request.references) } : {}),
    ...(login ? { image: login.image } : {}),
  };
  const project = projectObject(spec, identity);
  const hostnames = hostnamesOf(project, zone);
  // No other project requests a hostname derived from the id; but while Secrets have no owner, the creation is not complete either.
  const contested = hostnames.some(({ kind }) => kind !== "default");
  if (contested || secrets.length > 0) {
    project.spec.creationPending = true;
  }
  return {
    organizationId,
    namespace: organizationNamespace(organizationId),
    secrets,
    project,
    hostnames,
  };
}

/** The Secret with the credentials of a private image, and the image that names it. */
function imageLogin(
  { spec: { image }, imageAuthentication: login }: CreateProjectRequest,
  identity: Identity,
): { image: ProjectSpec["image"]; secret: Secret } | undefined {
  if (!image || !login) {
    return undefined;
  }
  if (login.auth_type === "aws") {
    const credentials = awsRegistrySecret(identity.projectId, login.aws);
    return {
      image: { ...image, awsCredentialsRef: { name: credentials.name } },
      secret: awsSecret(credentials, identity),
    };
  }
  const pull = pullSecret(identity.projectId, image.url, login);
  return {
    image: { ...image, pullSecretRef: { name: pull.name } },
    secret: imagePullSecret(pull, identity),
  };
}

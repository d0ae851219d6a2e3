import { isAlreadyExists, isNotFound, type KubeClient, resources } from "@slipway/controller-runtime";
import {
  annotations,
  type EnvironmentVariable,
  type EnvSource,
  fieldManagers,
  type Project,
  type ProjectSpec,
} from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import type { BoundReferences } from "../references/bind.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";
import { type Change, type ChangeServices, changeProject } from "./change.ts";
import { envSecret, ownedBy, type Secret } from "./creation/objects.ts";
import { envShards, envSources, variablesUsage } from "./creation/secrets.ts";
import type { StoredSecret } from "./read-envs.ts";

/** Replaces a project's environment variables, which are in Secrets. */

/** How often a Secret is tried that is removed between two requests. */
const ATTEMPTS = 3;
const WRITE = { fieldManager: fieldManagers.api };

/**
 * Replaces the project's environment variables: new Secrets first, named by what is in them, then the spec that
 * names them, so that one rollout swaps all. Secrets that it names no more are the operator's to remove.
 * What a failed change has reserved of the organization's bytes the operator releases minutes later.
 * @param bound what the variables refer to; undefined where every value is literal
 * @param kept names of Secrets that others write, which stay if the project names them
 * @throws Failure 409 when the organization has no bytes of variables left
 */
export async function replaceEnvironment(
  project: ApiProject,
  variables: readonly EnvironmentVariable[],
  services: ChangeServices & Pick<Services, "usage">,
  bound?: BoundReferences,
  kept: readonly string[] = [],
): Promise<Change> {
  const { organizationId, id: projectId } = project;
  const shards = envShards(projectId, variables);
  await services.usage.reserve(organizationId, variablesUsage(shards));
  const secrets = shards.map((shard) => envSecret(shard, { organizationId, projectId }));
  const keepAll = async (live: Project, kube: KubeClient): Promise<void> => {
    for (const secret of owned(secrets, live)) {
      await createOrKeep(secret, { ...services, kube });
    }
  };
  const change = await changeProject(
    project,
    services,
    (spec) => naming(spec, [...keptSources(spec, kept), ...envSources(shards, bound)]),
    {
      prepare: (_wanted, live, kube) => keepAll(live, kube),
    },
  );
  // The same variables again, perhaps in another order; and a Secret that was deleted is created again.
  if (!change.changed) {
    await keepAll(change.project.resource, services.kube).catch(refuse);
  }
  return change;
}

/** The Secrets of others that stay, before the project's own, which win. */
function keptSources({ envsFrom = [] }: ProjectSpec, kept: readonly string[]): EnvSource[] {
  return envsFrom.filter(({ name, references }) => references === undefined && kept.includes(name));
}

/** The spec with exactly these Secrets. */
function naming({ envsFrom: _, ...spec }: ProjectSpec, envsFrom: EnvSource[]): ProjectSpec {
  return envsFrom.length === 0 ? spec : { ...spec, envsFrom };
}

/** The Secrets as children of the project: they end with it. */
function owned(secrets: readonly Secret[], project: Project): Secret[] {
  const { ownerReferences } = ownedBy(project).metadata;
  return secrets.map((secret) => ({ ...secret, metadata: { ...secret.metadata, ownerReferences } }));
}

/**
 * Creates a Secret, or keeps the one of its name: it is marked as needed, since the operator may be about to remove what
 * nothing names, and applies the order of these variables.
 * @throws KubeError
 */
async function createOrKeep(secret: Secret, { kube, now }: ChangeServices): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await kube.create(resources.secrets, secret, WRITE);
      return;
    } catch (error) {
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
    const marks = { ...secret.metadata.annotations, [annotations.reusedAt]: now().toISOString() };
    try {
      const patch = { metadata: { annotations: marks } };
      const present = await kube.patch<StoredSecret>(resources.secrets, secret.metadata, patch, WRITE);
      if (hasSameData(present, secret)) {
        return;
      }
      throw failures.internal(new Error(`Secret ${secret.metadata.name} does not hold what its name says`));
    } catch (error) {
      // Removed between the two requests.
      if (!isNotFound(error) || attempt === ATTEMPTS) {
        throw error;
      }
    }
  }
}

function hasSameData({ data = {} }: StoredSecret, { stringData }: Secret): boolean {
  const names = Object.keys(data);
  return (
    names.length === Object.keys(stringData).length &&
    names.every((name) => Buffer.from(stringData[name] ?? "").toString("base64") === data[name])
  );
}

function refuse(error: unknown): never {
  throw error instanceof Failure ? error : failures.clusterUnavailable(error);
}

import {
  isAlreadyExists,
  isNotFound,
  type KubeClient,
  KubeError,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import {
  annotations,
  type EnvironmentVariable,
  type EnvSource,
  fieldManagers,
  type Project,
  type ProjectSpec,
} from "@slipway/crds";
import { mapConcurrently } from "../concurrency.ts";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import type { BoundReferences } from "../references/bind.ts";
import { projectResource } from "../resources.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";
import { type Change, type ChangeServices, changeProject } from "./change.ts";
import { envSecret, ownedBy, type Secret } from "./creation/objects.ts";
import { byName, envShards, envSources, variablesUsage } from "./creation/secrets.ts";

/** Reads and replaces a project's environment variables, which are in Secrets. */

/** A Secret as the apiserver sends it: values in Base64. */
export type StoredSecret = KubernetesObject & { data?: Record<string, string> };

/** Bytes of names and values of one answer: more than any process can be given, so no running project has more. */
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_CONCURRENT_READS = 4;
const TIMEOUT_MS = 5_000;
/** Reads of a project whose Secrets are replaced and removed at the same time. */
const MAX_ATTEMPTS = 3;

/**
 * A project's environment variables as they are in the cluster now, whichever client wrote their Secrets: of two with one name the
 * later Secret's, in the order in which `/v1` was sent them, others after them by name. A value that is no UTF-8 is
 * shown with U+FFFD.
 *
 * @throws Failure 404 when the project is deleted, 409 when the Secrets have too much for one answer or one does not exist:
 *   an incomplete answer would be taken for a complete one, and sent back as it is. 503
 */
export async function readEnvironment(
  kube: KubeClient,
  { metadata }: Pick<Project, "metadata">,
): Promise<EnvironmentVariable[]> {
  const ref = { namespace: metadata.namespace, name: metadata.name };
  try {
    for (let attempt = 1; ; attempt += 1) {
      const live = await kube.getOrUndefined<Project>(projectResource, ref, { timeoutMs: TIMEOUT_MS });
      if (!live) {
        throw failures.projectNotFound();
      }
      const secrets = await readSecrets(kube, live);
      const present = secrets.filter((secret) => secret !== undefined);
      if (present.length === secrets.length) {
        return variablesOf(present);
      }
      if (attempt === MAX_ATTEMPTS) {
        throw failures.environmentIncomplete(live.spec.envsFrom?.[secrets.indexOf(undefined)]?.name ?? "");
      }
    }
  } catch (error) {
    throw error instanceof KubeError ? failures.clusterUnavailable(error) : error;
  }
}

async function readSecrets(
  kube: KubeClient,
  { metadata, spec }: Project,
): Promise<(StoredSecret | undefined)[]> {
  let bytes = 0;
  return mapConcurrently(spec.envsFrom ?? [], MAX_CONCURRENT_READS, async ({ name }) => {
    const ref = { namespace: metadata.namespace, name };
    const secret = await kube.getOrUndefined<StoredSecret>(resources.secrets, ref, { timeoutMs: TIMEOUT_MS });
    bytes += Object.entries(secret?.data ?? {}).reduce(
      (sum, [key, value]) => sum + key.length + Buffer.byteLength(value, "base64"),
      0,
    );
    if (bytes > MAX_BYTES) {
      throw failures.environmentTooLarge(MAX_BYTES);
    }
    return secret;
  });
}

/** The variables of these Secrets, in their order. Pure. */
export function variablesOf(secrets: readonly StoredSecret[]): EnvironmentVariable[] {
  const found = new Map<string, { position: number; value: string }>();
  for (const secret of secrets) {
    const names = Object.keys(secret.data ?? {}).map((name) => ({ name }));
    const positions = positionsOf(secret, names.length);
    for (const [index, { name }] of names.sort(byName).entries()) {
      const value = Buffer.from(secret.data?.[name] ?? "", "base64").toString("utf8");
      found.set(name, { value, position: positions[index] ?? Number.MAX_SAFE_INTEGER });
    }
  }
  return [...found]
    .map(([name, { position, value }]) => ({ name, position, value }))
    .sort((a, b) => a.position - b.position || byName(a, b))
    .map(({ name, value }) => ({ name, value }));
}

/** The positions of its variables in the request to `/v1`; empty for Secrets that other clients wrote or changed. */
function positionsOf(secret: StoredSecret, count: number): number[] {
  const written = secret.metadata?.annotations?.[annotations.envOrder];
  if (written === undefined) {
    return [];
  }
  const positions = written.split(",").map(Number);
  return positions.length === count && positions.every(Number.isSafeInteger) ? positions : [];
}

/** How often a Secret is tried that is removed between two requests. */
const ATTEMPTS = 3;
const WRITE = { fieldManager: fieldManagers.api };

/**
 * Replaces the project's environment variables: new Secrets first, named by what is in them, then the spec that
 * names them, so that one rollout swaps all. Secrets that it names no more are the operator's to remove.
 * What a failed change has reserved of the organization's bytes the operator releases minutes later.
 * @param bound what the variables refer to; undefined where every value is literal
 * @throws Failure 409 when the organization has no bytes of variables left
 */
export async function replaceEnvironment(
  project: ApiProject,
  variables: readonly EnvironmentVariable[],
  services: ChangeServices & Pick<Services, "usage">,
  bound?: BoundReferences,
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
  const change = await changeProject(project, services, (spec) => naming(spec, envSources(shards, bound)), {
    prepare: (_wanted, live, kube) => keepAll(live, kube),
  });
  // The same variables again, perhaps in another order; and a Secret that was deleted is created again.
  if (!change.changed) {
    await keepAll(change.project.resource, services.kube).catch(refuse);
  }
  return change;
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

/** The Secrets that a project names: they must exist, and those created for it are deleted with it. */

import {
  controllerOf,
  controllerReference,
  isNotFound,
  type KubeClient,
  type KubernetesObject,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import {
  annotations,
  fieldManagers,
  annotations as known,
  labels,
  MANAGED_BY,
  type Project,
} from "@slipway/crds";
import { registryAnnotations } from "../registry/login.ts";
import { projectResource } from "../resources.ts";
import type { Finding } from "./status.ts";

export interface SecretDependencies {
  client: KubeClient;
  /** Secrets of organizations' namespaces, without their data. */
  secrets: Store;
}

/** On the Secret of a database's certificate: what its renewal needs to know of its content. */
export const CERTIFICATE = "slipway.dev/certificate";

/** Annotations of a Secret that somebody here reads. */
const KEPT_ANNOTATIONS: readonly string[] = [
  ...registryAnnotations,
  known.reusedAt,
  known.envBytes,
  CERTIFICATE,
];

/** Keeps a Secret's metadata only: the operator does not need its data. */
export function dropSecretData(secret: KubernetesObject): KubernetesObject {
  const {
    name,
    namespace,
    uid,
    resourceVersion,
    labels: own,
    ownerReferences,
    creationTimestamp,
    deletionTimestamp,
    annotations = {},
  } = secret.metadata ?? {};
  const kept = Object.entries(annotations).filter(([key]) => KEPT_ANNOTATIONS.includes(key));
  return {
    apiVersion: secret.apiVersion,
    kind: secret.kind,
    metadata: {
      name,
      namespace,
      uid,
      resourceVersion,
      labels: own,
      ownerReferences,
      creationTimestamp,
      deletionTimestamp,
      ...(kept.length > 0 ? { annotations: Object.fromEntries(kept) } : {}),
    },
  };
}

/**
 * The content of a Secret that the API created for a project, under a name with a content hash; undefined for users' own Secrets,
 * certificates and all others. Pure.
 */
export function contentOf({ metadata }: KubernetesObject): "env" | "pull" | undefined {
  const [, project, content] = metadata?.name?.match(/^(.+)-(env|pull)-[0-9a-f]{8,64}$/) ?? [];
  const own = metadata?.labels ?? {};
  const isManaged = own[labels.managedBy] === MANAGED_BY && own[labels.project] === project;
  if (!isManaged || metadata?.deletionTimestamp !== undefined) {
    return undefined;
  }
  return content === "env" || content === "pull" ? content : undefined;
}

/** Names of the Secrets that a spec, or the settings of a deployment, refer to, each once. */
export function secretNames({ envsFrom, image }: Pick<Project["spec"], "envsFrom" | "image">): string[] {
  const references = [...(envsFrom ?? []), image?.pullSecretRef, image?.awsCredentialsRef];
  return [...new Set(references.flatMap((reference) => (reference ? [reference.name] : [])))];
}

/** The first Secret that the project names and that does not exist. */
export async function findMissingSecret(
  project: Project,
  deps: SecretDependencies,
  signal: AbortSignal,
): Promise<Finding | undefined> {
  const { namespace } = project.metadata;
  for (const name of secretNames(project.spec)) {
    // The watch may be behind.
    const found =
      deps.secrets.get(namespace, name) ??
      (await deps.client.getOrUndefined(
        resources.secrets,
        { namespace, name },
        { metadataOnly: true, signal },
      ));
    if (!found) {
      return { reason: "SecretNotFound", message: `The Secret ${name} does not exist.` };
    }
  }
  return undefined;
}

/**
 * Makes the project the owner of the Secrets that were created for it, which have its label. Users' own Secrets may serve
 * several projects and are not adopted.
 */
export async function adoptSecrets(
  project: Project,
  deps: SecretDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name: id } = project.metadata;
  for (const name of secretNames(project.spec)) {
    const secret = deps.secrets.get(namespace, name);
    if (!secret || secret.metadata?.labels?.[labels.project] !== id || controllerOf(secret)) {
      continue;
    }
    const ownerReferences = [controllerReference(project, projectResource)];
    const adopted = await deps.client.apply<KubernetesObject>(
      resources.secrets,
      { apiVersion: "v1", kind: "Secret", metadata: { name, namespace, ownerReferences } },
      { fieldManager: fieldManagers.project, signal },
    );
    deps.secrets.observe(adopted);
  }
}

/** Whether a Secret holds variables of its project. Pure. */
export const isEnvSecret = (secret: KubernetesObject): boolean => contentOf(secret) === "env";

/** Whether its bytes count towards the organization's variables: those of a project, or those that `/v1` keeps for a variable group. Pure. */
export const isCountedSecret = (secret: KubernetesObject): boolean =>
  isEnvSecret(secret) || isGroupSecret(secret);

function isGroupSecret({ metadata }: KubernetesObject): boolean {
  const own = metadata?.labels ?? {};
  return (
    own[labels.variableGroup] !== undefined &&
    own[labels.managedBy] === MANAGED_BY &&
    metadata?.deletionTimestamp === undefined
  );
}

/** Bytes of names and values as they are recorded; undefined where they are not, as on Secrets of an earlier version. Pure. */
export function recordedBytes({ metadata }: KubernetesObject): number | undefined {
  const recorded = metadata?.annotations?.[annotations.envBytes];
  return recorded !== undefined && /^[0-9]{1,9}$/.test(recorded) ? Number(recorded) : undefined;
}

/** Bytes of names and values of a Secret's data, which is base64. Pure. */
export function bytesOfData(data: Readonly<Record<string, string>>): number {
  return Object.entries(data).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value, "base64"),
    0,
  );
}

/** Reads one Secret and records its bytes on it. One that was deleted meanwhile is ignored. */
export async function recordBytes(
  client: KubeClient,
  { metadata }: KubernetesObject,
  signal: AbortSignal,
): Promise<void> {
  const ref = { namespace: metadata?.namespace, name: metadata?.name ?? "" };
  try {
    const { data = {} } = await client.get<KubernetesObject & { data?: Record<string, string> }>(
      resources.secrets,
      ref,
      { signal },
    );
    const recorded = { [annotations.envBytes]: String(bytesOfData(data)) };
    await client.patch(resources.secrets, ref, { metadata: { annotations: recorded } }, { signal });
  } catch (error) {
    if (!isNotFound(error)) {
      throw error;
    }
  }
}

/** Secrets of a project's own with the values of what it refers to, or copies of what it shares with others. */

import { createHmac } from "node:crypto";
import {
  controllerReference,
  isAlreadyExists,
  type KubeClient,
  type KubernetesObject,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { annotations, fieldManagers, labels, MANAGED_BY, type Project } from "@slipway/crds";
import { bytesOfData } from "../projects/secrets.ts";
import { projectResource } from "../resources.ts";
import { childLabels } from "../workload/app.ts";
import { missingPasswordLabels, passwordLabels } from "./password-labels.ts";

const HASH_LENGTH = 12;

/** Bytes of names and values: earlier ones of a project are in the cluster for a while, and count in no quota. */
export const MAX_RESOLVED_BYTES = 262_144;
/** What Linux takes as one string of an environment (MAX_ARG_STRLEN), its `=` and its end included. */
export const MAX_VARIABLE_BYTES = 131_072;

/** The content of such a Secret, and what of its name is known by it. */
export interface ResolvedContent {
  /** Hexadecimal digits of a hash of the content. */
  hash: string;
  /** Base64 by name. */
  data: Readonly<Record<string, string>>;
  /** Its bytes are recorded on it, since they count for a bound. */
  isCounted?: boolean;
  /** Keyed hashes of the passwords of databases among the values, by id of the database. */
  passwords?: ReadonlyMap<string, string>;
}

/**
 * The Secret with the values of a Secret's references.
 * @param source name of the Secret whose values were resolved
 * @param key makes the name useless for guessing a password
 * @param passwords keyed hashes of the databases' passwords among the values
 */
export function resolvedSecret(
  project: Project,
  organizationId: string,
  {
    source,
    values,
    key,
    passwords,
  }: {
    source: string;
    values: Readonly<Record<string, string>>;
    key: string;
    passwords?: ReadonlyMap<string, string>;
  },
) {
  const { name: id } = project.metadata;
  const entries = Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1));
  const hash = createHmac("sha256", key)
    .update(JSON.stringify([id, source, entries]))
    .digest("hex");
  const data = Object.fromEntries(
    entries.map(([name, value]) => [name, Buffer.from(value).toString("base64")]),
  );
  return secretOf(project, organizationId, { hash, data, passwords });
}

/** The name of a project's Secret with content of this hash. */
export const resolvedName = (projectId: string, hash: string): string =>
  `${projectId}-refs-${hash.slice(0, HASH_LENGTH)}`;

/** An immutable child of the project, named by its content: other values are another Secret, and so another version of the project. */
export function secretOf(
  project: Project,
  organizationId: string,
  { hash, data, isCounted = false, passwords = new Map() }: ResolvedContent,
) {
  const { name: id, namespace } = project.metadata;
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: resolvedName(id, hash),
      namespace,
      labels: {
        ...childLabels({ type: project.spec.type, id, organizationId }),
        ...passwordLabels(passwords),
      },
      ...(isCounted ? { annotations: { [annotations.envBytes]: String(bytesOfData(data)) } } : {}),
      ownerReferences: [controllerReference(project, projectResource)],
    },
    type: "Opaque",
    immutable: true,
    data,
  };
}

/**
 * Creates such a Secret unless it exists.
 * @returns its name
 * @throws KubeError
 */
export async function ensureResolvedSecret(
  secret: ReturnType<typeof secretOf>,
  { client, secrets }: { client: KubeClient; secrets: Store },
): Promise<string> {
  const { name, namespace } = secret.metadata;
  const seen = secrets.get(namespace, name);
  const options = { fieldManager: fieldManagers.project };
  if (seen && !seen.metadata?.deletionTimestamp) {
    // One that an earlier version has made does not say whose passwords it has.
    const missing = missingPasswordLabels(secret, seen);
    if (Object.keys(missing).length > 0) {
      const patch = { metadata: { uid: seen.metadata?.uid, labels: missing } };
      secrets.observe(await client.patch(resources.secrets, { namespace, name }, patch, options));
    }
    return name;
  }
  try {
    secrets.observe(await client.create<KubernetesObject>(resources.secrets, secret, options));
  } catch (error) {
    // It was created a moment ago, and the watch has not reported it yet.
    if (!isAlreadyExists(error)) {
      throw error;
    }
  }
  return name;
}

/** Whether a Secret of a project's has values of references. */
export function isResolvedSecret({
  metadata,
}: {
  metadata?: { name?: string; labels?: Readonly<Record<string, string>> };
}): boolean {
  const own = metadata?.labels ?? {};
  const [, project] = metadata?.name?.match(/^(.+)-refs-[0-9a-f]{12}$/) ?? [];
  return project !== undefined && own[labels.project] === project && own[labels.managedBy] === MANAGED_BY;
}

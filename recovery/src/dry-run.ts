/** Whether the apiserver would create a backup's objects: in a namespace for tests, by dry runs, of which nothing is stored. */

import {
  isAlreadyExists,
  type KubeClient,
  KubeError,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import { fieldManagers } from "@slipway/crds";
import { restoredResources } from "./objects.ts";
import { restoredObject } from "./restored-object.ts";

/** Objects that are named in an error. */
const NAMED = 5;

type Service = KubernetesObject & { spec?: { ports?: { nodePort?: number }[] } };

/**
 * Every object but namespaces, as a restore creates it, but for its status.
 * @param namespace in which those of all namespaces are tried
 * @returns objects by kind
 * @throws Error that names the first objects which the apiserver refuses, and why
 */
export async function createDry(
  client: KubeClient,
  namespace: string,
  objects: AsyncIterable<KubernetesObject>,
  backups: ReadonlyMap<string, string>,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const uids = new Map<string, string>();
  const refused: string[] = [];
  let refusals = 0;
  for await (const saved of objects) {
    const { kind = "", metadata } = saved;
    counts[kind] = (counts[kind] ?? 0) + 1;
    if (metadata?.uid) {
      uids.set(metadata.uid, metadata.uid);
    }
    const why = await refusal(client, dryObject(restoredObject(saved, uids, backups), namespace));
    if (why !== undefined) {
      refusals += 1;
      if (refused.length < NAMED) {
        refused.push(`${kind} ${metadata?.namespace ?? ""}/${metadata?.name}: ${why}`);
      }
    }
  }
  if (refusals > 0) {
    throw new Error(`the apiserver refuses ${refusals} objects, such as ${refused.join("; ")}`);
  }
  return counts;
}

/** An object for a dry run: the ports of nodes are in use by the Services that were backed up. Pure. */
export function dryObject(object: KubernetesObject, namespace: string): KubernetesObject {
  const { status: _, ...rest } = object as KubernetesObject & { status?: object };
  // An owner whose deletion it blocks needs a right over the owner, with the admission plugin for it.
  const ownerReferences = rest.metadata?.ownerReferences?.map(({ blockOwnerDeletion: _, ...owner }) => owner);
  const isNamespaced = restoredResources.find(({ kind }) => kind === object.kind)?.namespaced;
  const metadata = {
    ...rest.metadata,
    ...(ownerReferences ? { ownerReferences } : {}),
    ...(isNamespaced ? { namespace } : {}),
  };
  if (object.kind !== "Service") {
    return { ...rest, metadata };
  }
  const { spec } = object as Service;
  const ports = spec?.ports?.map(({ nodePort: _, ...port }) => port);
  return { ...rest, metadata, spec: { ...spec, ports } } as KubernetesObject;
}

/** Why an object is refused; undefined when it is not. One that is there by its name was valid, which is checked before. */
async function refusal(client: KubeClient, object: KubernetesObject): Promise<string | undefined> {
  const resource = restoredResources.find(({ kind }) => kind === object.kind);
  if (!resource) {
    return "its kind is not restored";
  }
  if (resource === resources.namespaces) {
    return undefined;
  }
  try {
    await client.create(resource, object, { dryRun: true, fieldManager: fieldManagers.recovery });
    return undefined;
  } catch (error) {
    if (isAlreadyExists(error)) {
      return undefined;
    }
    // Any other error is one of the cluster, not of the object.
    if (!(error instanceof KubeError) || error.status >= 500 || error.status === 429) {
      throw error;
    }
    return error.message.slice(0, 300);
  }
}

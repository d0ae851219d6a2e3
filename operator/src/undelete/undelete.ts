/**
 * Creates a deleted project again. Each step may be repeated, and every one is before the project is reconciled: it has the
 * annotation `slipway.dev/undeleted-from` until it has all that it had.
 */

import {
  isAlreadyExists,
  isInvalid,
  type KubeClient,
  type KubernetesObject,
  type Resource,
  resources,
} from "@slipway/controller-runtime";
import {
  annotations,
  type DeletedProject,
  deletedProjectState,
  fieldManagers,
  type Project,
} from "@slipway/crds";
import { projectResource } from "../resources.ts";
import { listKept } from "./kept-secrets.ts";
import {
  type Claim,
  type KeptState,
  restoredChild,
  restoredClaim,
  restoredProject,
  restoredSecret,
  restoredStatus,
  type Secret,
} from "./record.ts";
import { bindVolume, canBind } from "./volumes.ts";

/** The apiserver, and until when. */
interface Access {
  client: KubeClient;
  signal: AbortSignal;
}

const WRITE = { fieldManager: fieldManagers.deletedProject };

/** What is kept of a deleted project beside its volumes and Secrets; undefined when it is gone. */
export async function readState(
  { metadata: { namespace, name } }: DeletedProject,
  { client, signal }: Access,
): Promise<KeptState | undefined> {
  const secret = await client.getOrUndefined<Secret>(resources.secrets, { namespace, name }, { signal });
  return secret && deletedProjectState<KeptState>(secret.data);
}

/** Whether every volume of a deleted project is still there for it. */
export async function hasVolumes({ metadata, spec }: DeletedProject, access: Access): Promise<boolean> {
  for (const volume of spec.volumes) {
    if (!(await canBind(volume, metadata.name, access))) {
      return false;
    }
  }
  return true;
}

/** Creates the Project, which takes its name. @returns undefined when another one has it */
export async function createProject(
  record: DeletedProject,
  state: KeptState,
  { client, signal }: Access,
): Promise<Project | undefined> {
  const project = restoredProject(state, record.metadata.name);
  try {
    return await client.create<Project>(projectResource, project, { ...WRITE, signal });
  } catch (error) {
    if (isAlreadyExists(error)) {
      return undefined;
    }
    throw error;
  }
}

/**
 * Gives a Project its Secrets, its state, its claims and its history.
 * @returns false while a claim is not bound yet
 */
export async function restoreChildren(
  record: DeletedProject,
  project: Project,
  state: KeptState,
  access: Access,
): Promise<boolean> {
  const { namespace, name } = record.metadata;
  for (const kept of await listKept({ namespace, name }, access)) {
    const secret = restoredSecret(kept, project);
    if (secret) {
      await createOnce(resources.secrets, secret, access);
    }
  }
  for (const configMap of state.configMaps) {
    await createOnce(resources.configMaps, configMap, access);
  }
  for (const service of state.services) {
    await createService(restoredChild(service, project), access);
  }
  // All of them before any is waited for.
  const claims: Claim[] = [];
  for (const claim of state.claims) {
    const made = await createOnce(resources.persistentVolumeClaims, restoredClaim(claim, project), access);
    await bindVolume(made, access);
    claims.push(made);
  }
  if (!claims.every(({ status }) => status?.phase === "Bound")) {
    return false;
  }
  await restoreStatus(project, state, access);
  return true;
}

/** From here on the project is reconciled. */
export async function completeUndelete({ metadata }: Project, { client, signal }: Access): Promise<void> {
  const { name, namespace, uid } = metadata;
  const patch = { metadata: { uid, annotations: { [annotations.undeletedFrom]: null } } };
  await client.patch(projectResource, { namespace, name }, patch, { ...WRITE, signal });
}

async function restoreStatus(project: Project, state: KeptState, { client, signal }: Access): Promise<void> {
  const { name, namespace, uid } = project.metadata;
  const status = restoredStatus(state);
  // Only the reconciler of projects, which does not reconcile this one yet, records a generation.
  if (project.status?.observedGeneration === undefined && status.observedGeneration !== undefined) {
    const patch = { metadata: { uid }, status };
    const options = { ...WRITE, subresource: "status", signal };
    await client.patch(projectResource, { namespace, name }, patch, options);
  }
}

/** @returns it as it is created, now or by an earlier attempt */
async function createOnce<T extends KubernetesObject>(
  resource: Resource,
  object: T,
  { client, signal }: Access,
): Promise<T> {
  try {
    return await client.create<T>(resource, object, { ...WRITE, signal });
  } catch (error) {
    if (!isAlreadyExists(error)) {
      throw error;
    }
  }
  const { name = "", namespace } = object.metadata ?? {};
  return client.get<T>(resource, { namespace, name }, { signal });
}

type WithPorts = KubernetesObject & { spec: { ports?: { nodePort?: number }[] } };

/** With its former port of the nodes, or another one where that is taken by now. */
async function createService(service: KubernetesObject, access: Access): Promise<void> {
  try {
    await createOnce(resources.services, service, access);
  } catch (error) {
    if (!isInvalid(error)) {
      throw error;
    }
    const { spec } = service as WithPorts;
    const ports = spec.ports?.map(({ nodePort: _, ...port }) => port);
    await createOnce(resources.services, { ...service, spec: { ...spec, ports } } as WithPorts, access);
  }
}

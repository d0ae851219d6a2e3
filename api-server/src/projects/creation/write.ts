import {
  isAlreadyExists,
  isConflict,
  type KubeClient,
  type KubernetesObject,
  type Resource,
  resources,
} from "@slipway/controller-runtime";
import {
  type DomainClaim,
  databaseNames,
  fieldManagers,
  isDatabaseType,
  organizationNamespace,
  type Project,
} from "@slipway/crds";
import { failures } from "../../errors/catalog.ts";
import { projectResource } from "../../resources.ts";
import type { Services } from "../../services.ts";
import {
  claimHostnames,
  deleteClaims,
  hostnamesOf,
  ownsClaim,
  readClaim,
  type WantedHostname,
} from "../claims.ts";
import { type ProjectIdentity, readProjectQuota, releaseProjectQuota } from "../quotas.ts";
import { type AccountsSecret, ownedBy, type Secret } from "./objects.ts";

/** Writes the objects of a creation, and deletes them again when it fails. */

const WRITE = { fieldManager: fieldManagers.api };

/** What one creation writes. */
export interface CreationPlan {
  organizationId: string;
  namespace: string;
  secrets: readonly (Secret | AccountsSecret)[];
  project: Project;
  /** What to claim, in order. */
  hostnames: readonly WantedHostname[];
}

/** What a creation has written until now. */
export interface WrittenObjects {
  /** Its Secrets, created by this call or an earlier one. */
  secrets: KubernetesObject[];
  /** Uid of the project, when this call created it. */
  createdUid?: string;
}

/** Whether everything is written: from then on the operator reconciles the project. */
export const isCreated = ({ metadata, spec }: Project): boolean =>
  metadata.deletionTimestamp === undefined && !spec.creationPending;

/** Whether an object is being deleted. */
export const isDeleting = ({ metadata }: KubernetesObject): boolean =>
  metadata?.deletionTimestamp !== undefined;

/**
 * Writes a project: Secrets, Project, claims of its domains, owner of the Secrets. Every name derives from the project's
 * id, so the same plan written again completes an earlier attempt; objects that exist are left as they are.
 *
 * @param written records every object as it is written
 * @returns the project as the cluster has it
 * @throws Failure 409 when a domain is claimed, 503 when an existing object is being deleted; KubeError
 */
export async function writeProject(
  kube: KubeClient,
  plan: CreationPlan,
  written: WrittenObjects,
): Promise<Project> {
  for (const secret of plan.secrets) {
    written.secrets.push((await createOrKeep(kube, resources.secrets, secret)).object);
  }
  const { object: project, isNew } = await createOrKeep(kube, projectResource, plan.project);
  if (isNew) {
    written.createdUid = project.metadata.uid;
  } else if (isCreated(project)) {
    return project;
  }
  // The operator claims for a project that it observes, too: then the claim exists and is already the project's.
  await claimHostnames(kube, project, plan.hostnames);
  for (const secret of plan.secrets) {
    await kube.patch(resources.secrets, secret.metadata, ownedBy(project), WRITE);
  }
  return completeCreation(kube, project);
}

async function createOrKeep<T extends KubernetesObject>(
  kube: KubeClient,
  resource: Resource,
  object: T,
): Promise<{ object: T; isNew: boolean }> {
  try {
    return { object: await kube.create(resource, object, WRITE), isNew: true };
  } catch (error) {
    if (!isAlreadyExists(error)) {
      throw error;
    }
  }
  const { namespace, name = "" } = object.metadata ?? {};
  const kept = await kube.getOrUndefined<T>(resource, { namespace, name });
  if (kept === undefined || isDeleting(kept)) {
    throw failures.creationInProgress();
  }
  return { object: kept, isNew: false };
}

/** From here on the operator reconciles it. */
function completeCreation(kube: KubeClient, project: Project): Promise<Project> | Project {
  if (!project.spec.creationPending) {
    return project;
  }
  const { namespace, name, uid } = project.metadata;
  const patch = { metadata: { uid }, spec: { creationPending: null } };
  return kube.patch<Project>(projectResource, { namespace, name }, patch, WRITE);
}

/** The project of this id as it is live, not in memory. @throws KubeError */
export function readLive(
  kube: KubeClient,
  { organizationId, projectId }: ProjectIdentity,
): Promise<Project | undefined> {
  const ref = { namespace: organizationNamespace(organizationId), name: projectId };
  return kube.getOrUndefined<Project>(projectResource, ref);
}

/**
 * Deletes what a refused creation, or an earlier one under the same id, has written: claims, Project, Secrets, and
 * then the quota. Only what this call created, by its uid, or what is incomplete; a project that is created stays.
 *
 * @returns whether nothing is left that would conflict with the next attempt
 * @throws KubeError; Failure 503 when the ledger is unavailable
 */
export async function undoCreation(
  identity: ProjectIdentity,
  services: Pick<Services, "domainZone" | "kube" | "ledger">,
  written: WrittenObjects = { secrets: [] },
): Promise<boolean> {
  const { kube } = services;
  const project = await readLive(kube, identity);
  if (project && isCreated(project) && project.metadata.uid !== written.createdUid) {
    return false;
  }
  const quota = await readProjectQuota(services, identity);
  const secrets = [...written.secrets];
  if (project && !isDeleting(project)) {
    secrets.push(...(await secretsOf(kube, project)));
    await deleteClaims(kube, await claimsOf(project, services));
    await deleteThis(kube, projectResource, project);
  }
  for (const secret of secrets) {
    await deleteThis(kube, resources.secrets, secret);
  }
  await releaseProjectQuota(services, identity, quota);
  return true;
}

async function claimsOf(
  project: Project,
  { kube, domainZone }: Pick<Services, "domainZone" | "kube">,
): Promise<DomainClaim[]> {
  const claims = await Promise.all(
    hostnamesOf(project, domainZone).map(({ hostname }) => readClaim(kube, hostname)),
  );
  return claims.filter((claim) => claim !== undefined && ownsClaim(project, claim)) as DomainClaim[];
}

/** Those that the project names, or has by its own name, of any call. */
async function secretsOf(kube: KubeClient, { spec, metadata }: Project): Promise<KubernetesObject[]> {
  const refs = [...(spec.envsFrom ?? []), spec.image?.pullSecretRef, spec.image?.awsCredentialsRef];
  if (isDatabaseType(spec.type)) {
    refs.push({ name: databaseNames(metadata.name).credentials });
  }
  const found = await Promise.all(
    refs.map((ref) =>
      ref
        ? kube.getOrUndefined<KubernetesObject>(resources.secrets, {
            namespace: metadata.namespace,
            name: ref.name,
          })
        : undefined,
    ),
  );
  return found.filter((secret) => secret !== undefined);
}

/** Deletes this object; another one of its name stays. */
async function deleteThis(
  kube: KubeClient,
  resource: Resource,
  { metadata }: KubernetesObject,
): Promise<void> {
  const { namespace, name = "", uid } = metadata ?? {};
  try {
    await kube.delete(resource, { namespace, name }, { uid });
  } catch (error) {
    if (!isConflict(error)) {
      throw error;
    }
  }
}

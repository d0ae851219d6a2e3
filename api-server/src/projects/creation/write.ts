import { annotations, type DomainClaim, fieldManagers, type Project } from "@slipway/crds";
import {
  isAlreadyExists,
  isForbidden,
  isInvalid,
  isNamespaceTerminating,
  isNotFound,
  type KubeClient,
  KubeError,
  type KubernetesObject,
  type Resource,
  resources,
} from "@slipway/kube";
import { failures } from "../../errors/catalog.ts";
import { Failure } from "../../errors/failure.ts";
import { claimHostnames, giveBack, type WantedHostname } from "../claims.ts";
import { projectResource } from "../kinds.ts";
import { ownedBy, type Secret } from "./objects.ts";

const WRITE = { fieldManager: fieldManagers.api };

/** What one creation writes. */
export interface CreationPlan {
  organizationId: string;
  namespace: string;
  secrets: readonly Secret[];
  project: Project;
  /** What to claim, in order. */
  hostnames: readonly WantedHostname[];
}

/**
 * Writes a project: Secrets, Project, claims of its domains, owner of the Secrets. Every name derives from the project's
 * id, so the same plan written again finishes what was begun. When a domain turns out to be taken, what was
 * written is taken back.
 *
 * @returns the project as the cluster has it
 * @throws Failure
 */
export async function writeProject(kube: KubeClient, plan: CreationPlan): Promise<Project> {
  let claims: DomainClaim[] = [];
  try {
    for (const secret of plan.secrets) await createOrKeep(kube, resources.secrets, secret);
    const project = await createOrKeep(kube, projectResource, plan.project);
    // The operator claims for a project it sees, too: then a claim is there and already ours.
    claims = await claimHostnames(kube, project, plan.hostnames);
    for (const secret of plan.secrets) {
      await kube.patch(resources.secrets, secret.metadata, ownedBy(project), WRITE);
    }
    return await giveToOperator(kube, project);
  } catch (error) {
    if (error instanceof Failure || !isOutcomeUnknown(error)) await takeBack(kube, plan, claims);
    throw toFailure(error);
  }
}

/** Whether the cluster has the project, other than on its way out. @throws KubeError */
export async function isInCluster(kube: KubeClient, { metadata }: Project): Promise<boolean> {
  const { namespace, name } = metadata;
  const found = await kube.getOrUndefined<Project>(projectResource, { namespace, name });
  return found !== undefined && found.metadata.deletionTimestamp === undefined;
}

async function createOrKeep<T extends KubernetesObject>(
  kube: KubeClient,
  resource: Resource,
  object: T,
): Promise<T> {
  try {
    return await kube.create(resource, object, WRITE);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const { namespace, name = "" } = object.metadata ?? {};
    return kube.get<T>(resource, { namespace, name });
  }
}

/** From here on the operator brings it up. */
function giveToOperator(kube: KubeClient, project: Project): Promise<Project> | Project {
  const { namespace, name, uid, annotations: given } = project.metadata;
  if (given?.[annotations.claiming] === undefined) return project;
  const patch = { metadata: { uid, annotations: { [annotations.claiming]: null } } };
  return kube.patch<Project>(projectResource, { namespace, name }, patch, WRITE);
}

/** A request without an answer may have been done: then the next try, or the operator, goes on from there. */
function isOutcomeUnknown(error: unknown): boolean {
  return !(error instanceof KubeError) || error.status === 0 || error.status >= 500;
}

/** Best effort: what stays behind names its project in a label, and its owner where it has one. */
async function takeBack(kube: KubeClient, plan: CreationPlan, claims: readonly DomainClaim[]): Promise<void> {
  const { namespace, name } = plan.project.metadata;
  await giveBack(kube, claims);
  await kube.delete(projectResource, { namespace, name }).catch(() => undefined);
  for (const secret of plan.secrets) {
    await kube.delete(resources.secrets, secret.metadata).catch(() => undefined);
  }
}

function toFailure(error: unknown): unknown {
  if (!(error instanceof KubeError)) return error;
  if (isNotFound(error) || isNamespaceTerminating(error)) return failures.organizationRuntimeUnavailable();
  // The organization's quota is the platform's own guard: it refuses with 403.
  if (isForbidden(error)) return failures.planCapacityTemporarilyUnavailable(error);
  if (isInvalid(error)) return failures.internal(error);
  return failures.clusterUnavailable(error);
}

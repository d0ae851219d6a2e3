import { type DomainClaim, domainClaim, fieldManagers, type Project } from "@slipway/crds";
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
import { domainClaimResource, projectResource } from "../kinds.ts";
import { ownedBy, type Secret } from "./objects.ts";

const WRITE = { fieldManager: fieldManagers.api };

/** What one creation writes. */
export interface CreationPlan {
  organizationId: string;
  namespace: string;
  secrets: readonly Secret[];
  project: Project;
  /** Default domain to claim. */
  hostname: string | undefined;
}

/**
 * Writes a project: Secrets, Project, claim of its domain, owner of the Secrets. Every name derives from the project's
 * id, so the same plan written again finishes what was begun. When the domain turns out to be taken, what was
 * written is taken back.
 *
 * @returns the project as the cluster has it
 * @throws Failure
 */
export async function writeProject(kube: KubeClient, plan: CreationPlan): Promise<Project> {
  try {
    for (const secret of plan.secrets) await createOrKeep(kube, resources.secrets, secret);
    const project = await createOrKeep(kube, projectResource, plan.project);
    if (plan.hostname !== undefined) await claimDomain(kube, plan, project, plan.hostname);
    for (const secret of plan.secrets) {
      await kube.patch(resources.secrets, secret.metadata, ownedBy(project), WRITE);
    }
    return project;
  } catch (error) {
    if (error instanceof Failure || !isOutcomeUnknown(error)) await takeBack(kube, plan);
    throw toFailure(error);
  }
}

/** The hostname's present claim, whosever it is. */
export async function readClaim(kube: KubeClient, hostname: string): Promise<DomainClaim | undefined> {
  try {
    return await kube.getOrUndefined<DomainClaim>(domainClaimResource, { name: hostname });
  } catch (error) {
    throw failures.clusterUnavailable(error);
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

async function claimDomain(
  kube: KubeClient,
  plan: CreationPlan,
  project: Project,
  hostname: string,
): Promise<void> {
  const wanted = domainClaim(project, {
    hostname,
    organization: plan.organizationId,
    kind: project.spec.subdomain === undefined ? "default" : "subdomain",
  });
  const claim = await createOrKeep(kube, domainClaimResource, wanted);
  // The operator claims for a project it sees, too: then the claim is there and already ours.
  if (claim.spec.projectRef.uid !== project.metadata.uid) throw failures.domainUnavailable(hostname);
}

/** A request without an answer may have been done: then the next try, or the operator, goes on from there. */
function isOutcomeUnknown(error: unknown): boolean {
  return !(error instanceof KubeError) || error.status === 0 || error.status >= 500;
}

/** Best effort: what stays behind names its project in a label, and its owner where it has one. */
async function takeBack(kube: KubeClient, plan: CreationPlan): Promise<void> {
  const { namespace, name } = plan.project.metadata;
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

import {
  isConflict,
  type KubeClient,
  type KubernetesObject,
  type Resource,
  resources,
} from "@slipway/controller-runtime";
import {
  type DomainClaim,
  databaseNames,
  isDatabaseType,
  organizationNamespace,
  type Project,
} from "@slipway/crds";
import { projectResource } from "../../resources.ts";
import type { Services } from "../../services.ts";
import { giveBack, hostnamesOf, ownsClaim, readClaim } from "../claims.ts";
import { type ProjectIdentity, readProjectQuota, releaseProjectQuota } from "../quotas.ts";
import { isCreated, isGoing, type WrittenObjects } from "./write.ts";

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
  if (project && !isGoing(project)) {
    secrets.push(...(await secretsOf(kube, project)));
    await giveBack(kube, await claimsOf(project, services));
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

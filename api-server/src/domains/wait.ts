import { setTimeout as sleep } from "node:timers/promises";
import type { KubeClient } from "@slipway/controller-runtime";
import { type DomainClaim, labels, type Project } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { hostnamesOf, ownsClaim } from "../projects/claims.ts";
import { domainClaimResource } from "../resources.ts";
import type { Services } from "../services.ts";
import { isExposureChanging } from "./spec.ts";

/** How long an answer waits for the operator to remove a route and release its hostname. */
const RELEASE_LIMIT_MS = 10_000;
const POLL_MS = 100;

type ReleaseServices = Pick<Services, "kube" | "projects" | "domainZone">;

/**
 * Resolves once the project has no claim that its spec does not contain, so that what it released is free for others.
 * @throws Failure 503 when that takes too long: the change is written, and a repeat of the request waits again
 */
export async function waitUntilReleased(project: ApiProject, services: ReleaseServices): Promise<void> {
  const deadline = performance.now() + RELEASE_LIMIT_MS;
  while ((await strayClaims(project, services)).length > 0) {
    if (performance.now() > deadline) {
      throw failures.domainReleasePending();
    }
    await sleep(POLL_MS);
  }
}

/**
 * Resolves once the operator reports the requested exposure, so that the next change is not refused; at the
 * latest after the same time, since a change may well take longer.
 */
export async function waitUntilExposed(
  { organizationId, id }: ApiProject,
  { projects }: Pick<Services, "projects">,
): Promise<void> {
  const deadline = performance.now() + RELEASE_LIMIT_MS;
  while (performance.now() < deadline) {
    const latest = (await projects.find(organizationId, id))?.resource;
    if (!latest || !isExposureChanging(latest.spec, latest)) {
      return;
    }
    await sleep(POLL_MS);
  }
}

/** Reads the current project: another change may claim what this one released. */
async function strayClaims(
  { organizationId, id, resource }: ApiProject,
  { kube, projects, domainZone }: ReleaseServices,
): Promise<DomainClaim[]> {
  const claims = await claimsOf(kube, resource).catch((error: unknown) => {
    throw failures.clusterUnavailable(error);
  });
  const latest = (await projects.find(organizationId, id))?.resource ?? resource;
  const wanted = hostnamesOf(latest, domainZone).map(({ hostname }) => hostname);
  return claims.filter(
    (claim) => !wanted.includes(claim.spec.hostname) && !isAhead(claim, latest.metadata.generation),
  );
}

/** The claims that a project has. @throws KubeError */
export async function claimsOf(kube: KubeClient, project: Project): Promise<DomainClaim[]> {
  const labelSelector = `${labels.project}=${project.metadata.name}`;
  const found = await kube.listAll<DomainClaim>(domainClaimResource, { labelSelector });
  return found.filter((claim) => ownsClaim(project, claim));
}

/** Whether a claim was created for a spec that is not written yet. */
function isAhead({ spec }: DomainClaim, generation = 0): boolean {
  return (spec.reservedFor?.generation ?? 0) > generation;
}

const FIRST_DOMAIN_LIMIT_MS = 1_500;
const FIRST_DOMAIN_POLL_MS = 50;

/**
 * A default domain is derived from the first name, and recorded in the status. Resolves once it does, or after a moment: a
 * name that changes before would change the domain that the creation returned.
 */
export async function waitForFirstDomain(
  { organizationId, id, resource }: ApiProject,
  { projects }: Pick<Services, "projects">,
): Promise<void> {
  const { type, exposure, subdomain } = resource.spec;
  if (type !== "http" || exposure !== "public" || subdomain !== undefined) {
    return;
  }
  const deadline = performance.now() + FIRST_DOMAIN_LIMIT_MS;
  for (;;) {
    const latest = await projects.find(organizationId, id);
    if (!latest || latest.resource.status?.domain !== undefined || performance.now() > deadline) {
      return;
    }
    await sleep(FIRST_DOMAIN_POLL_MS);
  }
}

import { isAlreadyExists, isConflict, isNotFound, type KubeClient } from "@slipway/controller-runtime";
import {
  challengeName,
  challengeValue,
  contendersOf,
  type DomainClaim,
  type DomainClaimSpec,
  defaultDomain,
  domainClaim,
  fieldManagers,
  MAX_CONTENDERS,
  organizationOfNamespace,
  type Project,
} from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { domainClaimResource } from "../resources.ts";

/** Taking and giving back hostnames. A DomainClaim is named after its hostname, so creating it is atomic. */

type Reservation = DomainClaimSpec["reservedFor"];

const WRITE = { fieldManager: fieldManagers.api };
/** Attempts at a claim that changes between two requests. */
const ATTEMPTS = 5;

/** What hostnames are claimed ahead for: a spec that is yet to be written. */
export interface Ahead {
  /** The generation whose spec will contain them. */
  generation: number;
  /** Now. The operator keeps them for a minute from here. */
  at: Date;
}

export interface WantedHostname {
  hostname: string;
  kind: DomainClaimSpec["kind"];
}

/**
 * Every hostname of a spec, in the order in which they are claimed: every process claims in this order and stops
 * at the first that is claimed already, so of two that request the same ones exactly one gets all. Pure.
 */
export function hostnamesOf(project: Project, zone: string): WantedHostname[] {
  const { type, exposure, subdomain, customDomains = [] } = project.spec;
  if (type !== "http" || exposure !== "public") {
    return [];
  }
  return [
    { hostname: defaultDomain(project, zone), kind: subdomain === undefined ? "default" : "subdomain" },
    ...[...customDomains].sort().map((hostname) => ({ hostname, kind: "custom" as const })),
  ];
}

/** Whether a claim is this project's, not an earlier one's of the same name. */
export function ownsClaim(project: Project, claim: DomainClaim): boolean {
  return claim.spec.projectRef.uid === project.metadata.uid;
}

/** The hostname's present claim, whosever it is. @throws KubeError */
export function readClaim(kube: KubeClient, hostname: string): Promise<DomainClaim | undefined> {
  return kube.getOrUndefined<DomainClaim>(domainClaimResource, { name: hostname });
}

/**
 * Claims hostnames for an existing project: all, or none of those that were not its own before.
 * @returns the claims that this call created, for {@link deleteClaims}
 * @throws Failure 409 that names the hostname that another project has; KubeError
 */
export async function claimHostnames(
  kube: KubeClient,
  project: Project,
  wanted: readonly WantedHostname[],
  ahead?: Ahead,
): Promise<DomainClaim[]> {
  const created: DomainClaim[] = [];
  try {
    for (const one of wanted) {
      const claim = await claimHostname(kube, wantedClaim(project, one, ahead));
      if (claim) {
        created.push(claim);
      }
    }
    return created;
  } catch (error) {
    await deleteClaims(kube, created);
    throw error;
  }
}

/**
 * Deletes exactly these claims, but none that another call has claimed ahead since. Best effort: the operator
 * releases claims that no spec contains.
 */
export async function deleteClaims(kube: KubeClient, claims: readonly DomainClaim[]): Promise<void> {
  for (const claim of claims) {
    await deleteUnchanged(kube, claim).catch(() => undefined);
  }
}

async function deleteUnchanged(kube: KubeClient, created: DomainClaim): Promise<void> {
  const { name, uid } = created.metadata;
  let { resourceVersion } = created.metadata;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    try {
      await kube.delete(domainClaimResource, { name }, { uid, resourceVersion });
      return;
    } catch (error) {
      if (!isConflict(error)) {
        throw error;
      }
    }
    // The operator may only have written its status.
    const now = await readClaim(kube, name);
    if (
      now === undefined ||
      now.metadata.uid !== uid ||
      !isSameReservation(now.spec.reservedFor, created.spec.reservedFor)
    ) {
      return;
    }
    resourceVersion = now.metadata.resourceVersion;
  }
}

function isSameReservation(one: Reservation, other: Reservation): boolean {
  return one?.generation === other?.generation && one?.at === other?.at;
}

function wantedClaim(project: Project, one: WantedHostname, ahead?: Ahead): DomainClaim {
  const organization = organizationOfNamespace(project.metadata.namespace ?? "") ?? "";
  const claim = domainClaim(project, { ...one, organization });
  if (ahead !== undefined) {
    claim.spec.reservedFor = { generation: ahead.generation, at: ahead.at.toISOString() };
  }
  return claim;
}

/**
 * Records on another organization's claim of a custom domain which organization requests it, beside those recorded meanwhile; best effort, for the next
 * attempt does it again.
 */
async function recordContender(
  kube: KubeClient,
  existing: DomainClaim,
  { spec }: DomainClaim,
): Promise<void> {
  const { name } = existing.metadata;
  let claim: DomainClaim | undefined = existing;
  for (let attempt = 0; claim !== undefined && attempt < ATTEMPTS; attempt += 1) {
    const patch = wishPatch(claim, spec);
    if (patch === undefined) {
      return;
    }
    try {
      await kube.patch(domainClaimResource, { name }, patch, WRITE);
      return;
    } catch (error) {
      if (!isConflict(error)) {
        return;
      }
    }
    claim = await readClaim(kube, name).catch(() => undefined);
  }
}

/** Undefined where nothing is to be recorded. Pure. */
function wishPatch(existing: DomainClaim, { kind, organization }: DomainClaimSpec): object | undefined {
  const before = contendersOf(existing);
  if (kind !== "custom" || organization === existing.spec.organization || before.includes(organization)) {
    return undefined;
  }
  const { uid, resourceVersion } = existing.metadata;
  const contenders = [organization, ...before].slice(0, MAX_CONTENDERS);
  return { metadata: { uid, resourceVersion }, spec: { contenders } };
}

/** The record by which the organization of a claim would prove a custom domain. */
function proofOf({ spec: { kind, hostname, organization } }: DomainClaim) {
  return kind === "custom"
    ? { name: challengeName(hostname), value: challengeValue(organization, hostname) }
    : undefined;
}

/** @returns the claim when this call created it, undefined when it was the project's own already */
async function claimHostname(kube: KubeClient, wanted: DomainClaim): Promise<DomainClaim | undefined> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    try {
      return await kube.create(domainClaimResource, wanted, WRITE);
    } catch (error) {
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
    const existing = await readClaim(kube, wanted.metadata.name);
    // Released between the two requests.
    if (!existing) {
      continue;
    }
    if (existing.spec.projectRef.uid !== wanted.spec.projectRef.uid) {
      await recordContender(kube, existing, wanted);
      throw failures.domainUnavailable(wanted.metadata.name, proofOf(wanted));
    }
    if (existing.metadata.deletionTimestamp === undefined && (await keep(kube, existing, wanted))) {
      return undefined;
    }
  }
  throw failures.addressNotAssigned();
}

/** Marks a claim that the project has already, and that may be about to be released, as in use. */
async function keep(kube: KubeClient, existing: DomainClaim, wanted: DomainClaim): Promise<boolean> {
  const { reservedFor } = wanted.spec;
  if (reservedFor === undefined) {
    return true;
  }
  const { name, uid, resourceVersion } = existing.metadata;
  const patch = { metadata: { uid, resourceVersion }, spec: { reservedFor } };
  try {
    await kube.patch(domainClaimResource, { name }, patch, WRITE);
    return true;
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) {
      return false;
    }
    throw error;
  }
}

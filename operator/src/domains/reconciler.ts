/** Reconciles one DomainClaim: proves its ownership, repeats the proof, and deletes it with its project. */

import {
  type KubeClient,
  type ObjectContext,
  type ObjectRef,
  type ReconcileContext,
  type Result,
  type Store,
  timestamp,
} from "@slipway/controller-runtime";
import {
  annotations,
  type DomainClaim,
  type DomainClaimConditionCatalog,
  type DomainClaimReason,
  PROOF_MISSING_MS,
  type Project,
  UNPROVED_DOMAIN_MS,
} from "@slipway/crds";
import { shortestDelay } from "../projects/kind.ts";
import { projectResource } from "../resources.ts";
import { type CertificateChecks, failureAfter } from "./certificates.ts";
import { deleteClaim, isHolder } from "./claims.ts";
import { challengeOf, type OwnershipChecks } from "./ownership.ts";
import type { Reservations } from "./reservations.ts";
import {
  isPlatforms,
  recordsOf,
  setProofMissing,
  setRouteConditions,
  setUnverified,
  setVerified,
} from "./status.ts";

export interface DomainClaimDependencies {
  claims: Store<DomainClaim>;
  projects: Store<Project>;
  /** Zone of default domains, which the platform owns. */
  domainZone: string;
  ownership: OwnershipChecks;
  /** Repeats the look-up of proved claims. */
  proofs: OwnershipChecks;
  reservations: Reservations;
  certificates: CertificateChecks;
}

type ClaimContext = Pick<
  ObjectContext<DomainClaim, DomainClaimConditionCatalog>,
  "conditions" | "status" | "clock" | "signal"
>;

/** Reports a claim: its proof, and the route of its project. */
export async function reconcileClaim(
  claim: DomainClaim,
  context: ClaimContext,
  deps: DomainClaimDependencies,
): Promise<Result | undefined> {
  const { projects, domainZone } = deps;
  const { conditions, status, clock } = context;
  const { namespace, name } = claim.spec.projectRef;
  const project = projects.get(namespace, name);
  let result: Result | undefined;
  if (isPlatforms(claim, domainZone)) {
    setVerified("zone", timestamp(clock.now()), status, conditions);
  } else {
    status.dnsRecords = recordsOf(claim, project, domainZone);
    result = await proveOwnership(claim, context, deps);
  }
  const again = await observeCertificate(claim, project, context, deps);
  setRouteConditions(claim, project, conditions, status.certificateFailure);
  return soonest(result, again);
}

/**
 * Records that the certificate of a custom domain could not be issued or renewed: once, until it is, however often that is retried.
 * @returns when to read it again
 */
async function observeCertificate(
  claim: DomainClaim,
  project: Project | undefined,
  { status, signal }: ClaimContext,
  { certificates }: DomainClaimDependencies,
): Promise<Result | undefined> {
  const { hostname, kind } = claim.spec;
  if (kind !== "custom") {
    return undefined;
  }
  const sslStatus = project?.status?.customDomains?.find((domain) => domain.hostname === hostname)?.sslStatus;
  const { found, againInMs } = await certificates.check(claim, sslStatus, signal);
  status.certificateFailure = failureAfter(status.certificateFailure, found, sslStatus);
  return againInMs === undefined ? undefined : { requeueAfterMs: againInMs };
}

function soonest(...results: readonly (Result | undefined)[]): Result | undefined {
  const requeueAfterMs = shortestDelay(...results.map((result) => result?.requeueAfterMs));
  return requeueAfterMs === undefined ? undefined : { requeueAfterMs };
}

const FINAL_REASONS: ReadonlySet<string> = new Set<DomainClaimReason>(["Expired", "ProvedByAnother"]);

/** @returns when to reconcile again: for the next look-up, or when the time for a proof ends */
async function proveOwnership(
  claim: DomainClaim,
  context: ClaimContext,
  deps: DomainClaimDependencies,
): Promise<Result | undefined> {
  const { conditions, status, clock } = context;
  const { ownership, reservations } = deps;
  const { name: hostname, uid = "", annotations: given } = claim.metadata;
  const now = clock.now();
  const isVouched = given?.[annotations.verifiedByOperator] === "true";
  if (status.verifiedAt !== undefined || isVouched) {
    ownership.forget(hostname);
    if (status.expiresAt !== undefined) {
      // It was not proved until now: its reservation ends, as with a proof.
      await reservations.end(claim);
    }
    setVerified(status.verifiedBy ?? "operator", timestamp(now), status, conditions);
    return status.verifiedBy === "txt" && !isVouched ? proveAgain(claim, context, deps) : undefined;
  }
  // The claim has failed for good: the project's controller deletes it.
  if (FINAL_REASONS.has(conditions.get("Verified")?.reason ?? "")) {
    return undefined;
  }
  const expiresAt = new Date((await reservations.since(claim)).getTime() + UNPROVED_DOMAIN_MS);
  status.expiresAt = timestamp(expiresAt);
  const leftMs = expiresAt.getTime() - now.getTime();
  const { proof, againInMs } = ownership.check(hostname, uid, challengeOf(claim));
  if (proof === "proved") {
    setVerified("txt", timestamp(now), status, conditions);
    await reservations.end(claim);
    return { requeueAfterMs: 0 };
  }
  // A claim that is created after the time has ended still gets one look-up: its owner may have proved it meanwhile. A failed
  // look-up does not count.
  const isAnswered = proof !== undefined && proof !== "failed";
  if (proof === "another" || (leftMs <= 0 && isAnswered)) {
    ownership.forget(hostname);
    setUnverified(proof === "another" ? proof : "expired", conditions);
    return undefined;
  }
  setUnverified(proof ?? "unknown", conditions);
  if (leftMs > 0) {
    return { requeueAfterMs: Math.min(againInMs ?? leftMs, leftMs) };
  }
  return againInMs === undefined ? undefined : { requeueAfterMs: againInMs };
}

/** Repeats the look-up of a proof. Another organization's proof replaces it; a proof that stays missing is reported. */
function proveAgain(
  claim: DomainClaim,
  { conditions, status, clock }: ClaimContext,
  { proofs }: DomainClaimDependencies,
): Result | undefined {
  const { name: hostname, uid = "" } = claim.metadata;
  const now = clock.now();
  const { proof, againInMs } = proofs.check(hostname, uid, challengeOf(claim));
  if (proof === "another") {
    proofs.forget(hostname);
    status.verifiedAt = undefined;
    status.verifiedBy = undefined;
    setUnverified("another", conditions);
    return undefined;
  }
  if (proof === "proved") {
    status.proofMissingSince = undefined;
  } else if (proof === "missing" || proof === "wrong") {
    status.proofMissingSince ??= timestamp(now);
  }
  const { proofMissingSince: since } = status;
  if (since !== undefined && now.getTime() - Date.parse(since) >= PROOF_MISSING_MS) {
    setProofMissing(since, conditions);
  }
  return againInMs === undefined ? undefined : { requeueAfterMs: againInMs };
}

export interface ReaperDependencies {
  client: KubeClient;
  claims: Store<DomainClaim>;
  projects: Store<Project>;
}

/**
 * Deletes a claim whose project no longer exists. A project that is being deleted keeps its hostnames: its finalizer
 * releases them once its route is deleted.
 * @returns whether the claim is deleted
 */
export async function reap(
  { name }: ObjectRef,
  { client, claims, projects }: ReaperDependencies,
  { signal, log }: Pick<ReconcileContext, "signal" | "log">,
): Promise<boolean> {
  const claim = claims.get(undefined, name);
  if (!claim || claim.metadata.deletionTimestamp) {
    return true;
  }
  const { projectRef } = claim.spec;
  const known = projects.get(projectRef.namespace, projectRef.name);
  if (known && isHolder(known, claim)) {
    return false;
  }
  // The watch may have delivered the claim before its project: only a live read is proof.
  const live = await client.getOrUndefined<Project>(projectResource, projectRef, { signal });
  if (live && isHolder(live, claim)) {
    return false;
  }
  log.info({ hostname: name, project: projectRef.name }, "releasing the hostname of a deleted project");
  await deleteClaim(claim.metadata, client, signal);
  return true;
}

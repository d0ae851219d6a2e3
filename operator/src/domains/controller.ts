/**
 * Domains: everything about the hostnames of projects, default and custom. This file watches DomainClaims and proves their
 * ownership (`ownership*.ts`, `txt-lookup.ts`, `reservations.ts`, `status.ts`); `reaper.ts` deletes claims whose project is
 * deleted. A reconcile of a project calls `project-domains.ts`: it claims hostnames (`project-claims.ts`, `claims.ts`), writes
 * their Ingresses (`desired/`), probes the ingress for their routes (`routes.ts`, `route-check.ts`), releases hostnames
 * (`release.ts`) and reports all that in the project's status (`project-status.ts`).
 */

import {
  type Controller,
  customSource,
  type Manager,
  type ObjectContext,
  objectReconciler,
  type Result,
  type Store,
  timestamp,
  tracedIn,
  watchMapped,
  watchObjects,
} from "@slipway/controller-runtime";
import {
  annotations,
  type DomainClaim,
  type DomainClaimConditionCatalog,
  type DomainClaimReason,
  fieldManagers,
  PROOF_MISSING_MS,
  type Project,
  UNPROVED_DOMAIN_MS,
} from "@slipway/crds";
import type { PolicyRule } from "../rbac.ts";
import { domainClaimResource } from "../resources.ts";
import { BY_PROJECT_UID } from "./claims.ts";
import { challengeOf } from "./ownership.ts";
import type { OwnershipChecks } from "./ownership-checks.ts";
import { reap } from "./reaper.ts";
import type { Reservations } from "./reservations.ts";
import {
  isPlatforms,
  recordsOf,
  setProofMissing,
  setRouteConditions,
  setUnverified,
  setVerified,
} from "./status.ts";

/** Permissions of the controller; the chart's ClusterRole is generated from them. */
export const rules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["domainclaims"], verbs: ["get", "list", "watch", "delete"] },
  { apiGroups: ["slipway.dev"], resources: ["domainclaims/status"], verbs: ["update"] },
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["get", "list", "watch"] },
];

export interface DomainClaimDependencies {
  claims: Store<DomainClaim>;
  projects: Store<Project>;
  /** Zone of default domains, which the platform owns. */
  domainZone: string;
  ownership: OwnershipChecks;
  /** Repeats the look-up of proved claims. */
  proofs: OwnershipChecks;
  reservations: Reservations;
}

/** Adds it to a manager. */
export function addDomainClaimController(manager: Manager, deps: DomainClaimDependencies): Controller {
  const { client, clock, recorder } = manager;
  const { claims, projects, ownership, proofs, reservations } = deps;
  const reportClaim = objectReconciler<DomainClaim, DomainClaimConditionCatalog>({
    client,
    clock,
    recorder,
    store: claims,
    resource: domainClaimResource,
    fieldManager: fieldManagers.domainClaim,
    reconcile: async (claim, context) => reconcileClaim(claim, context, deps),
  });
  return manager.addController({
    name: "domainclaim",
    reconcile: async (ref, context) => {
      const isReleased = await reap(ref, { client, claims, projects }, context);
      if (isReleased) {
        ownership.forget(ref.name);
        proofs.forget(ref.name);
        reservations.drop(ref.name);
      }
      return isReleased ? undefined : reportClaim(ref, context);
    },
    sources: [
      watchObjects(claims),
      watchMapped(projects, ({ metadata }) =>
        claims.byIndex(BY_PROJECT_UID, metadata.uid ?? "").map((claim) => ({ name: claim.metadata.name })),
      ),
      customSource((enqueue) => ownership.onEnd(enqueue)),
      customSource((enqueue) => proofs.onEnd(enqueue)),
    ],
    workers: 2,
    traced: tracedIn(claims),
  });
}

type ClaimContext = Pick<
  ObjectContext<DomainClaim, DomainClaimConditionCatalog>,
  "conditions" | "status" | "clock"
>;

async function reconcileClaim(
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
  setRouteConditions(claim, project, conditions);
  return result;
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

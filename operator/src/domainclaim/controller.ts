/** The controller of claims: proves ownership, says how each stands, and frees the hostnames of projects that are gone. */

import {
  annotations,
  type DomainClaim,
  fieldManagers,
  type Project,
  UNPROVED_DOMAIN_MS,
} from "@slipway/crds";
import type { Store } from "@slipway/kube";
import type { PolicyRule } from "../rbac.ts";
import { domainClaimResource } from "../resources.ts";
import {
  type Controller,
  customSource,
  type Manager,
  type ObjectContext,
  objectReconciler,
  type Result,
  timestamp,
  tracedIn,
  watchMapped,
  watchObjects,
} from "../runtime/index.ts";
import { BY_PROJECT_UID } from "./claims.ts";
import { challengeOf } from "./ownership.ts";
import type { OwnershipChecks } from "./ownershipChecks.ts";
import { reap } from "./reaper.ts";
import { isPlatforms, recordsOf, tellRoute, tellUnproved, tellVerified } from "./tell.ts";

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
}

/** Adds it to a manager. */
export function addDomainClaimController(manager: Manager, deps: DomainClaimDependencies): Controller {
  const { client, clock, recorder } = manager;
  const { claims, projects, ownership } = deps;
  const tell = objectReconciler<DomainClaim>({
    client,
    clock,
    recorder,
    store: claims,
    resource: domainClaimResource,
    fieldManager: fieldManagers.domainClaim,
    reconcile: async (claim, context) => tellClaim(claim, context, deps),
  });
  return manager.addController({
    name: "domainclaim",
    reconcile: async (ref, context) => {
      const leaving = await reap(ref, { client, claims, projects }, context);
      if (leaving) {
        ownership.forget(ref.name);
      }
      return leaving ? undefined : tell(ref, context);
    },
    sources: [
      watchObjects(claims),
      watchMapped(projects, ({ metadata }) =>
        claims.byIndex(BY_PROJECT_UID, metadata.uid ?? "").map((claim) => ({ name: claim.metadata.name })),
      ),
      customSource((enqueue) => ownership.onEnd(enqueue)),
    ],
    workers: 2,
    traced: tracedIn(claims),
  });
}

type ClaimContext = Pick<ObjectContext<DomainClaim>, "conditions" | "status" | "clock">;

function tellClaim(
  claim: DomainClaim,
  context: ClaimContext,
  { projects, domainZone, ownership }: DomainClaimDependencies,
): Result | undefined {
  const { conditions, status, clock } = context;
  const { namespace, name } = claim.spec.projectRef;
  const project = projects.get(namespace, name);
  let result: Result | undefined;
  if (isPlatforms(claim, domainZone)) {
    tellVerified("zone", timestamp(clock.now()), status, conditions);
  } else {
    status.dnsRecords = recordsOf(claim, project, domainZone);
    result = proveOwnership(claim, context, ownership);
  }
  tellRoute(claim, project, conditions);
  return result;
}

/** Returns when to come back: for the next look-up, or for the end of the time that there is for a proof. */
function proveOwnership(
  claim: DomainClaim,
  { conditions, status, clock }: ClaimContext,
  ownership: OwnershipChecks,
): Result | undefined {
  const { name: hostname, uid = "", creationTimestamp = "", annotations: given } = claim.metadata;
  const now = clock.now();
  if (status.verifiedAt !== undefined || given?.[annotations.verifiedByOperator] === "true") {
    ownership.forget(hostname);
    tellVerified(status.verifiedBy ?? "operator", timestamp(now), status, conditions);
    return undefined;
  }
  const expiresAt = new Date(Date.parse(creationTimestamp) + UNPROVED_DOMAIN_MS);
  status.expiresAt = timestamp(expiresAt);
  const leftMs = expiresAt.getTime() - now.getTime();
  if (leftMs <= 0) {
    ownership.forget(hostname);
    tellUnproved("expired", conditions);
    return undefined;
  }
  const { proof = "unknown", againInMs } = ownership.check(hostname, uid, challengeOf(claim));
  if (proof === "proved") {
    tellVerified("txt", timestamp(now), status, conditions);
    return undefined;
  }
  tellUnproved(proof, conditions);
  return { requeueAfterMs: Math.min(againInMs ?? leftMs, leftMs) };
}

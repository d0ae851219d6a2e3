/**
 * Domains: everything about the hostnames of projects, default and custom. This file watches DomainClaims; `reconciler.ts`
 * proves their ownership (`ownership*.ts`, `txt-lookup.ts`, `reservations.ts`, `status.ts`) and deletes those of deleted
 * projects. A reconcile of a project calls `project-domains.ts`: it claims hostnames (`project-claims.ts`, `claims.ts`), writes
 * their Ingresses (`desired/`), probes the ingress for their routes (`routes.ts`, `route-check.ts`), releases hostnames
 * (`release.ts`) and reports all that in the project's status (`project-status.ts`).
 */

import {
  type Controller,
  customSource,
  type Manager,
  objectReconciler,
  tracedIn,
  watchMapped,
  watchObjects,
} from "@slipway/controller-runtime";
import { type DomainClaim, type DomainClaimConditionCatalog, fieldManagers } from "@slipway/crds";
import type { PolicyRule } from "../rbac.ts";
import { domainClaimResource } from "../resources.ts";
import { BY_PROJECT_UID } from "./claims.ts";
import { type DomainClaimDependencies, reap, reconcileClaim } from "./reconciler.ts";

/** Permissions of the controller; the chart's ClusterRole is generated from them. */
export const rules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["domainclaims"], verbs: ["get", "list", "watch", "delete"] },
  { apiGroups: ["slipway.dev"], resources: ["domainclaims/status"], verbs: ["update"] },
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["get", "list", "watch"] },
];

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

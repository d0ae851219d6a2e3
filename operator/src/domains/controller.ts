/**
 * Domains: everything about the hostnames of projects, default and custom. This file watches DomainClaims; `reconciler.ts`
 * proves their ownership (`ownership.ts`, `reservations.ts`, `status.ts`) and deletes those of deleted projects. A reconcile
 * of a project calls `project-domains.ts`: it claims hostnames (`project-claims.ts`, `claims.ts`), writes their Ingresses
 * (`desired/`), probes the ingress for their routes (`routes.ts`, `route-check.ts`), releases hostnames (`release.ts`) and
 * reports all that in the project's status (`project-status.ts`).
 */

import {
  type BackoffOptions,
  type Controller,
  customSource,
  type Manager,
  objectReconciler,
  tracedIn,
  watchMapped,
  watchObjects,
} from "@slipway/controller-runtime";
import {
  contendersOf,
  type DomainClaim,
  type DomainClaimConditionCatalog,
  fieldManagers,
  organizationOfNamespace,
} from "@slipway/crds";
import { BY_WANTED_HOST, type ProjectStores } from "../projects/stores.ts";
import type { PolicyRule } from "../rbac.ts";
import { domainClaimResource } from "../resources.ts";
import { CertificateChecks, certificateRules } from "./certificates.ts";
import { BY_PROJECT_UID } from "./claims.ts";
import { createTxtLookup, OwnershipChecks } from "./ownership.ts";
import { type DomainClaimDependencies, reap, reconcileClaim } from "./reconciler.ts";
import { type ReservationLedger, Reservations } from "./reservations.ts";

/** Permissions of the controller; the chart's ClusterRole is generated from them. */
export const rules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["domainclaims"], verbs: ["get", "list", "watch", "delete"] },
  { apiGroups: ["slipway.dev"], resources: ["domainclaims/status"], verbs: ["update"] },
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["get", "list", "watch"] },
];

/** In organizations' namespaces. */
export const organizationRules: PolicyRule[] = certificateRules;

/** Adds it to a manager. */
export function addDomainClaimController(manager: Manager, deps: DomainClaimDependencies): Controller {
  const { client, clock, recorder } = manager;
  const { claims, projects, ownership, proofs, reservations, certificates } = deps;
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
        certificates.forget(ref.name);
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
    workers: 8,
    // With its project; what is known of a deleted claim is forgotten by every shard.
    isOwnKey: ({ name }, owns) => {
      const claim = claims.get(undefined, name);
      return claim === undefined || owns(claim.spec.projectRef.namespace);
    },
    traced: tracedIn(claims),
  });
}

// Constructs what proves domains, and adds the controller of their claims.

interface DomainOptions extends Pick<ProjectStores, "projects" | "claims"> {
  domainZone: string;
  /** Name servers that prove the ownership of domains; none for the system's. */
  dnsServers: string[];
  ownershipRetry?: BackoffOptions;
  proofRetry?: BackoffOptions;
  reservations?: ReservationLedger;
  /** Between two reads of a certificate. */
  certificatePeriodsMs?: { pending_issuance: number; active: number };
}

/** Adds everything about the ownership of domains to a manager. */
export function addDomains(manager: Manager, options: DomainOptions): void {
  const { projects, claims, domainZone, ownershipRetry, proofRetry = PROOF_RETRY } = options;
  const checkOptions = {
    lookup: createTxtLookup({ servers: options.dnsServers }),
    clock: manager.clock,
    random: manager.random,
    contenders: (hostname: string) => contendersFor(hostname, { projects, claims }),
  };
  addDomainClaimController(manager, {
    claims,
    projects,
    domainZone,
    ownership: new OwnershipChecks({ ...checkOptions, retry: ownershipRetry }),
    proofs: new OwnershipChecks({ ...checkOptions, retry: proofRetry, repeats: true }),
    reservations: new Reservations(options.reservations ?? NO_RESERVATIONS, manager.log),
    certificates: new CertificateChecks({
      client: manager.client,
      clock: manager.clock,
      periodsMs: options.certificatePeriodsMs,
    }),
  });
}

/** Between two look-ups of a domain that is proved: a day. */
const PROOF_RETRY: BackoffOptions = { baseMs: 86_400_000, maxMs: 86_400_000 };

/** Remembers nothing: each claim counts alone. */
const NO_RESERVATIONS: ReservationLedger = {
  firstClaimOf: async ({ claimedAt }) => claimedAt,
  forget: async () => {},
};

/** Organizations that want a hostname, by a project's spec or since they were refused it over `/v1`. */
function contendersFor(
  hostname: string,
  { projects, claims }: Pick<ProjectStores, "projects" | "claims">,
): string[] {
  const wanting = projects.byIndex(BY_WANTED_HOST, hostname);
  const claim = claims.get(undefined, hostname);
  return [
    ...wanting.flatMap(({ metadata }) => organizationOfNamespace(metadata.namespace ?? "") ?? []),
    ...(claim ? contendersOf(claim) : []),
  ];
}

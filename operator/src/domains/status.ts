/** Conditions and status of a DomainClaim. Changes nothing but its arguments. */

import type { ConditionSet } from "@slipway/controller-runtime";
import {
  customDomainRecords,
  type DomainClaim,
  type DomainClaimConditionCatalog,
  type DomainClaimReason,
  type DomainClaimStatus,
  defaultDomain,
  isInZone,
  organizationOfNamespace,
  type Project,
} from "@slipway/crds";
import type { Proof } from "./ownership.ts";

interface Unproved {
  reason: DomainClaimReason;
  message: string;
}

const UNPROVED: Readonly<Record<Exclude<Proof, "proved"> | "unknown", Unproved>> = {
  unknown: { reason: "TxtRecordMissing", message: "Ownership has not been looked up yet." },
  missing: { reason: "TxtRecordMissing", message: "The TXT record that proves ownership does not exist." },
  wrong: {
    reason: "TxtRecordWrong",
    message: "The TXT record that is to prove ownership holds another value.",
  },
  another: {
    reason: "ProvedByAnother",
    message: "The TXT record proves that another organization owns the domain.",
  },
  failed: { reason: "LookupFailed", message: "The name servers gave no answer about the TXT record." },
};

const PROVED = { zone: "PlatformZone", txt: "OwnershipProved", operator: "VouchedByOperator" } as const;

/** Whether ownership needs no proof, since the platform owns the zone. */
export function isPlatforms({ spec: { hostname, kind } }: DomainClaim, zone: string): boolean {
  return kind !== "custom" && isInZone(hostname, zone);
}

/** Sets that ownership is proved, and since when. The time of the first proof stays. */
export function setVerified(
  by: NonNullable<DomainClaimStatus["verifiedBy"]>,
  now: string,
  status: DomainClaimStatus,
  conditions: ConditionSet<DomainClaimConditionCatalog>,
): void {
  const reason = PROVED[by];
  conditions.set({ type: "Verified", status: "True", reason });
  status.verifiedBy = by;
  status.expiresAt = undefined;
  if (by !== "zone") {
    status.verifiedAt ??= now;
  }
}

/** Reports that the record which proved ownership has been missing for long; the domain stays the project's. */
export function setProofMissing(since: string, conditions: ConditionSet<DomainClaimConditionCatalog>): void {
  conditions.set({
    type: "Verified",
    status: "True",
    reason: "ProofMissing",
    message: `The TXT record that proved ownership has been missing since ${since}.`,
  });
}

/** Sets that ownership is not proved yet, or that the time for a proof has ended. */
export function setUnverified(
  found: Exclude<Proof, "proved"> | "unknown" | "expired",
  conditions: ConditionSet<DomainClaimConditionCatalog>,
): void {
  const condition: Unproved =
    found === "expired"
      ? { reason: "Expired", message: "Ownership was not proved in time." }
      : UNPROVED[found];
  conditions.set({ type: "Verified", status: "False", ...condition });
}

/** The records that the owner of a custom domain has to create; the domain points to the project's default one. */
export function recordsOf({ spec }: DomainClaim, project: Project | undefined, zone: string) {
  const organization = organizationOfNamespace(spec.projectRef.namespace);
  if (!project || organization === undefined) {
    return undefined;
  }
  const target = project.status?.domain ?? defaultDomain(project, zone);
  return customDomainRecords({ hostname: spec.hostname, organization, target });
}

/** Sets `Routed` and `CertificateReady` from the project's status, and `Ready` from all conditions. */
export function setRouteConditions(
  { spec: { hostname } }: DomainClaim,
  project: Project | undefined,
  conditions: ConditionSet<DomainClaimConditionCatalog>,
  failure?: DomainClaimStatus["certificateFailure"],
): void {
  const custom = project?.status?.customDomains?.find((domain) => domain.hostname === hostname);
  const isDefault = project?.status?.domain === hostname;
  const domainReady = project?.status?.conditions?.some(
    ({ type, status }) => type === "DomainReady" && status === "True",
  );
  if (custom?.status === "active" || (isDefault && domainReady)) {
    conditions.set({ type: "Routed", status: "True", reason: "Routed" });
  } else {
    const message = "The project's route is not in place yet.";
    conditions.set({ type: "Routed", status: "False", reason: "RoutePending", message });
  }
  setCertificateReady(custom?.sslStatus, failure, conditions);
  const obstacle = (["Verified", "Routed", "CertificateReady"] as const)
    .map((type) => conditions.get(type))
    .find((condition) => condition?.status === "False");
  conditions.set(
    obstacle
      ? { type: "Ready", status: "False", reason: obstacle.reason, message: obstacle.message }
      : { type: "Ready", status: "True", reason: "Ready" },
  );
}

/** A platform that issues no certificates has no such condition. */
function setCertificateReady(
  sslStatus: string | undefined,
  failure: DomainClaimStatus["certificateFailure"],
  conditions: ConditionSet<DomainClaimConditionCatalog>,
): void {
  const type = "CertificateReady";
  if (sslStatus === undefined || sslStatus === "disabled") {
    conditions.remove(type);
  } else if (sslStatus === "active") {
    conditions.set({ type, status: "True", reason: "CertificateIssued" });
  } else if (failure !== undefined) {
    const message = `The certificate could not be issued since ${failure.since}: ${failure.message}`;
    conditions.set({ type, status: "False", reason: "CertificateFailed", message });
  } else {
    const message = "The certificate is not issued yet.";
    conditions.set({ type, status: "False", reason: "CertificatePending", message });
  }
}

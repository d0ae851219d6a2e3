import { createHash } from "node:crypto";
import { z } from "zod";
import { conditions } from "./conditions.ts";
import { hostname, matching, objectName, observedGeneration, text, timestamp } from "./fields.ts";
import type { Resource } from "./metadata.ts";
import { API_VERSION, labels, MANAGED_BY, ORGANIZATION_ID } from "./names.ts";
import type { Project } from "./project/index.ts";
import { dnsRecords } from "./project/status.ts";
import { immutableMembers, withRules } from "./rule.ts";

/** Condition types of a DomainClaim. */
export const domainClaimConditions = {
  /** Positive, summary: traffic for the hostname may reach the project. */
  Ready: "Ready",
  /** Positive: ownership is proved; always True for default domains and subdomains of the platform's zone. */
  Verified: "Verified",
  /** Positive: the ingress routes the hostname. */
  Routed: "Routed",
  /** Positive, custom domains only: the ingress holds a certificate for the hostname. */
  CertificateReady: "CertificateReady",
} as const;
export type DomainClaimCondition = keyof typeof domainClaimConditions;

/** Reasons of a DomainClaim's conditions. */
export const domainClaimReasons = {
  Ready: "Ready",
  PlatformZone: "PlatformZone",
  OwnershipProved: "OwnershipProved",
  VouchedByOperator: "VouchedByOperator",
  TxtRecordMissing: "TxtRecordMissing",
  TxtRecordWrong: "TxtRecordWrong",
  LookupFailed: "LookupFailed",
  Routed: "Routed",
  RoutePending: "RoutePending",
  CertificateIssued: "CertificateIssued",
  CertificatePending: "CertificatePending",
  CertificateFailed: "CertificateFailed",
  ProjectGone: "ProjectGone",
  Expired: "Expired",
  ProvedByAnother: "ProvedByAnother",
  ProofMissing: "ProofMissing",
} as const;
export type DomainClaimReason = keyof typeof domainClaimReasons;
/** What conditions of a DomainClaim may say. */
export interface DomainClaimConditionCatalog {
  type: DomainClaimCondition;
  reason: DomainClaimReason;
}

/** Most organizations that a claim names as wanting its hostname. */
export const MAX_CONTENDERS = 8;

const fields = z
  .strictObject({
    hostname: hostname("The hostname that is claimed; the same as metadata.name."),
    organization: matching(
      ORGANIZATION_ID,
      "must be an organization id",
      40,
      "Organization that holds the claim.",
    ).min(1),
    projectRef: z
      .strictObject({
        namespace: objectName("Namespace of the project."),
        name: objectName("Id of the project."),
        uid: text(1, 64, "UID of the project: a later project of the same name does not inherit the claim."),
      })
      .describe("The project that the hostname leads to."),
    kind: z
      .enum(["default", "subdomain", "custom"])
      .describe(
        "default: made from the project's name. subdomain: chosen in the platform's zone. custom: the user's own domain.",
      ),
    reservedFor: z
      .strictObject({
        generation: z.int().min(1).meta({
          description: "Generation of the project that will ask for the hostname.",
          format: "int64",
        }),
        at: timestamp("When it was reserved for that generation."),
      })
      .describe(
        "Set by /v1 ahead of the spec: the claim is kept until the project has that generation, or for a minute.",
      )
      .optional(),
    contenders: z
      .array(matching(ORGANIZATION_ID, "must be an organization id", 40, "Organization.").min(1))
      .max(MAX_CONTENDERS)
      .meta({ "x-kubernetes-list-type": "atomic" })
      .describe(
        "Organizations that /v1 refused the hostname, the newest first. One of them that proves it has it from a claim without a proof.",
      )
      .optional(),
  })
  .describe("Hostname, organization, project and kind cannot be changed: a claim is deleted and made again.");
export type DomainClaimSpec = z.output<typeof fields>;

export const domainClaimSpec = withRules(
  fields,
  [],
  [immutableMembers("a claim", ["hostname", "organization", "projectRef", "kind"])],
);

export const domainClaimStatus = z
  .strictObject({
    observedGeneration: observedGeneration("Generation that this is about."),
    conditions: conditions.optional(),
    dnsRecords: dnsRecords.optional(),
    verifiedAt: timestamp("When ownership was proved.").optional(),
    verifiedBy: z.enum(["zone", "txt", "operator"]).describe("How ownership was proved.").optional(),
    expiresAt: timestamp("When an unproved claim is given up.").optional(),
    proofMissingSince: timestamp(
      "Since when the record that proved ownership has not been found.",
    ).optional(),
    certificateFailure: z
      .strictObject({
        since: timestamp("When an issuance failed first, since one succeeded last."),
        message: text(0, 1024, "Why that one failed, in the issuer's words, without addresses."),
      })
      .describe("The certificate could not be issued or renewed; absent once it is.")
      .optional(),
  })
  .describe("Where the claim stands.");
export type DomainClaimStatus = z.output<typeof domainClaimStatus>;

/** The claim of one project on one hostname; its name is the hostname, so that creating it is atomic. */
export type DomainClaim = Resource<"DomainClaim", DomainClaimSpec, DomainClaimStatus>;

/** The claim of a project that exists (its uid is in it) on a hostname. */
export function domainClaim(
  project: Project,
  { hostname, organization, kind }: Pick<DomainClaimSpec, "hostname" | "organization" | "kind">,
): DomainClaim {
  const { name, namespace = "", uid = "" } = project.metadata;
  return {
    apiVersion: API_VERSION,
    kind: "DomainClaim",
    metadata: {
      name: hostname,
      labels: {
        [labels.managedBy]: MANAGED_BY,
        [labels.organization]: organization,
        [labels.project]: name,
      },
    },
    spec: { hostname, organization, kind, projectRef: { namespace, name, uid } },
  };
}

// What a user's own domain needs before it leads to a project. Pure.

/** A record to create at the DNS provider. */
export interface DnsRecord {
  type: "TXT" | "CNAME" | "A" | "AAAA";
  name: string;
  value: string;
}

/** Milliseconds for which a domain whose ownership is not proved stays reserved. */
export const UNPROVED_DOMAIN_MS = 7 * 24 * 3600 * 1000;

/** How long the record that proved a domain may be missing until that is reported, in milliseconds. */
export const PROOF_MISSING_MS = 7 * 24 * 3600 * 1000;

/** Where the proof of ownership is queried. */
export function challengeName(hostname: string): string {
  return `_slipway-challenge.${hostname}`;
}

/** What the TXT record must hold: it says which organization the owner of the domain lets use it. */
export function challengeValue(organization: string, hostname: string): string {
  const digest = createHash("sha256").update(`${organization}/${hostname}`).digest("hex");
  return `slipway-verification=${digest.slice(0, 32)}`;
}

/**
 * The records of a custom domain: the proof, and the way to the platform.
 * @param target the project's default domain, to which the hostname is to lead
 */
export function customDomainRecords(domain: {
  hostname: string;
  organization: string;
  target: string;
}): DnsRecord[] {
  const { hostname, organization, target } = domain;
  return [
    { type: "TXT", name: challengeName(hostname), value: challengeValue(organization, hostname) },
    { type: "CNAME", name: hostname, value: target },
  ];
}

/**
 * Whether a hostname is the platform's own. In the zone: the zone itself and the reserved names, everything else there
 * is a default domain. Outside of it: the reserved names and what lies below them.
 * @param reserved full hostnames, or single labels, each for `<label>.<zone>`
 */
export function isReservedHostname(
  hostname: string,
  { zone, reserved }: { zone: string; reserved: readonly string[] },
): boolean {
  const names = reserved.map((name) => (name.includes(".") ? name : `${name}.${zone}`));
  return hostname === zone || names.some((name) => hostname === name || hostname.endsWith(`.${name}`));
}

/** Whether a hostname lies in the platform's zone: no custom domain may. */
export function isInZone(hostname: string, zone: string): boolean {
  return hostname === zone || hostname.endsWith(`.${zone}`);
}

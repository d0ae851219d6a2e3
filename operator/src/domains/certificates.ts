/** What cert-manager says of the certificates of custom domains that it could not issue or renew. */

import {
  customResource,
  type KubeClient,
  KubeError,
  type KubernetesObject,
} from "@slipway/controller-runtime";
import type { CustomDomainStatus, DomainClaim, DomainClaimStatus } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { PolicyRule } from "../rbac.ts";
import { tlsSecretName } from "./desired/ingress.ts";
import { withoutAddresses } from "./issuer-text.ts";

/** cert-manager's own kind. It is read by name and not watched: where it is not installed, nothing waits for it. */
export const certificateResource = customResource("cert-manager.io", "v1", "certificates", "Certificate");

/** Of organizations' namespaces. */
export const certificateRules: PolicyRule[] = [
  { apiGroups: ["cert-manager.io"], resources: ["certificates"], verbs: ["get"] },
];

/** A Certificate, as far as it is read here. */
export interface CertificateView extends KubernetesObject {
  status?: {
    /** Of the newest issuance, if it has failed; it stays while that is retried, and is removed by one that succeeds. */
    lastFailureTime?: string;
    conditions?: { type: string; status: string; message?: string }[];
  };
}

/** Why a certificate could not be issued or renewed. */
export interface CertificateFailure {
  /** RFC 3339. */
  at: string;
  message: string;
}

/** What a Certificate says: that it has failed, that it has not, or neither, while a failed issuance is retried. */
export type CertificateFinding = CertificateFailure | "none" | "retried";

const NO_MESSAGE = "The issuer did not issue the certificate.";

/** What is found in the Certificate of a domain; a text of the issuer comes without addresses. Pure. */
export function findingOf({ status }: CertificateView, hostname: string): CertificateFinding {
  const { lastFailureTime, conditions = [] } = status ?? {};
  if (lastFailureTime === undefined || Number.isNaN(Date.parse(lastFailureTime))) {
    return "none";
  }
  // True is the retry, with a text that says why it is issued.
  const failed = conditions.find((one) => one.type === "Issuing" && one.status === "False");
  if (failed === undefined) {
    return "retried";
  }
  const message = withoutAddresses(failed.message || NO_MESSAGE, hostname);
  return { at: new Date(lastFailureTime).toISOString(), message };
}

/**
 * What a claim's status records after a read: the first failure, until the certificate is issued. A domain that is not proved for a
 * while, or whose project was not observed yet, keeps it. Pure.
 */
export function failureAfter(
  before: DomainClaimStatus["certificateFailure"],
  found: CertificateFinding | undefined,
  sslStatus: CustomDomainStatus["sslStatus"] | undefined,
): DomainClaimStatus["certificateFailure"] {
  if (sslStatus === "disabled" || (sslStatus === "active" && found === "none")) {
    return undefined;
  }
  return before ?? (typeof found === "object" ? { since: found.at, message: found.message } : undefined);
}

/** Between two reads of a certificate that is waited for, and of one that is in place and may have to be renewed. */
const PERIODS_MS = { pending_issuance: 60_000, active: 3_600_000 } as const;

/** What is known of a certificate. */
export interface CertificateCheck {
  /** What was read last in this state of the domain; undefined where the cluster does not answer. */
  found?: CertificateFinding;
  /** When to read it again, in milliseconds. */
  againInMs?: number;
}

interface LastRead {
  uid: string | undefined;
  sslStatus: keyof typeof PERIODS_MS;
  found: CertificateFinding | undefined;
  at: number;
  periodMs: number;
}

export interface CertificateCheckOptions {
  client: KubeClient;
  clock: Pick<Clock, "monotonic">;
  periodsMs?: { pending_issuance: number; active: number };
}

/** Reads the Certificate of each custom domain now and then, however often its claim is reconciled. */
export class CertificateChecks {
  readonly #options: CertificateCheckOptions;
  /** By hostname. What was found is kept: a status that could not be written gets it again. */
  readonly #read = new Map<string, LastRead>();

  constructor(options: CertificateCheckOptions) {
    this.#options = options;
  }

  async check(
    claim: DomainClaim,
    sslStatus: CustomDomainStatus["sslStatus"] | undefined,
    signal: AbortSignal,
  ): Promise<CertificateCheck> {
    if (sslStatus !== "pending_issuance" && sslStatus !== "active") {
      return {};
    }
    const { clock, periodsMs = PERIODS_MS } = this.#options;
    const { name: hostname, uid } = claim.metadata;
    const before = this.#read.get(hostname);
    if (before && before.uid === uid && before.sslStatus === sslStatus) {
      const leftMs = before.at + before.periodMs - clock.monotonic();
      if (leftMs > 0) {
        return { found: before.found, againInMs: leftMs };
      }
    }
    const at = clock.monotonic();
    const found = await this.#find(claim, signal);
    // What is recorded may be of a certificate that was issued since.
    const isUnsure = found === "retried" || (found === undefined && claim.status?.certificateFailure);
    const periodMs = isUnsure ? periodsMs.pending_issuance : periodsMs[sslStatus];
    this.#read.set(hostname, { uid, sslStatus, found, at, periodMs });
    return { found, againInMs: periodMs };
  }

  async #find(
    { spec: { hostname, projectRef } }: DomainClaim,
    signal: AbortSignal,
  ): Promise<CertificateFinding | undefined> {
    const ref = { namespace: projectRef.namespace, name: tlsSecretName(projectRef.name, hostname) };
    try {
      const certificate = await this.#options.client.getOrUndefined<CertificateView>(
        certificateResource,
        ref,
        { signal },
      );
      return certificate ? findingOf(certificate, hostname) : "none";
    } catch (error) {
      if (!(error instanceof KubeError)) {
        throw error;
      }
      return undefined;
    }
  }

  /** Of a claim that is deleted. */
  forget(hostname: string): void {
    this.#read.delete(hostname);
  }
}

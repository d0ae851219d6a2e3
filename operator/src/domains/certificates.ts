/** What cert-manager says of the certificates of custom domains that it could not issue or renew. */

import {
  customResource,
  type KubeClient,
  KubeError,
  type KubernetesObject,
} from "@slipway/controller-runtime";
import type { CustomDomainStatus, DomainClaim } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { PolicyRule } from "../rbac.ts";
import { tlsSecretName } from "./desired/ingress.ts";

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

const MESSAGE_MAX_LENGTH = 1_024;
const NO_MESSAGE = "The issuer did not issue the certificate.";

/** The failure that a Certificate has; undefined of one that was issued, or was not tried to its end yet. Pure. */
export function failureOf({ status }: CertificateView): CertificateFailure | undefined {
  const { lastFailureTime, conditions = [] } = status ?? {};
  if (lastFailureTime === undefined || Number.isNaN(Date.parse(lastFailureTime))) {
    return undefined;
  }
  const message = conditions.find(({ type }) => type === "Issuing")?.message || NO_MESSAGE;
  return {
    at: new Date(lastFailureTime).toISOString(),
    message: message.slice(0, MESSAGE_MAX_LENGTH),
  };
}

/** Between two reads of a certificate that is waited for, and of one that is in place and may have to be renewed. */
const PERIODS_MS = { pending_issuance: 60_000, active: 3_600_000 } as const;

/** What was read of a certificate. */
export interface CertificateCheck {
  /** Undefined where nothing was read: it is too soon, or the cluster does not answer. */
  found?: { failure: CertificateFailure | undefined };
  /** When to read it again, in milliseconds. */
  againInMs?: number;
}

export interface CertificateCheckOptions {
  client: KubeClient;
  clock: Pick<Clock, "monotonic">;
  periodsMs?: { pending_issuance: number; active: number };
}

/** Reads the Certificate of each custom domain now and then, however often its claim is reconciled. */
export class CertificateChecks {
  readonly #options: CertificateCheckOptions;
  /** By hostname, when its Certificate was read. */
  readonly #read = new Map<string, { uid: string | undefined; at: number }>();

  constructor(options: CertificateCheckOptions) {
    this.#options = options;
  }

  async check(
    { metadata: { name: hostname, uid }, spec: { projectRef } }: DomainClaim,
    sslStatus: CustomDomainStatus["sslStatus"] | undefined,
    signal: AbortSignal,
  ): Promise<CertificateCheck> {
    if (sslStatus !== "pending_issuance" && sslStatus !== "active") {
      return {};
    }
    const { client, clock, periodsMs = PERIODS_MS } = this.#options;
    const period = periodsMs[sslStatus];
    const before = this.#read.get(hostname);
    const passed = before?.uid === uid && before ? clock.monotonic() - before.at : Number.POSITIVE_INFINITY;
    if (passed < period) {
      return { againInMs: period - passed };
    }
    this.#read.set(hostname, { uid, at: clock.monotonic() });
    const ref = { namespace: projectRef.namespace, name: tlsSecretName(projectRef.name, hostname) };
    try {
      const certificate = await client.getOrUndefined<CertificateView>(certificateResource, ref, { signal });
      return { found: { failure: certificate && failureOf(certificate) }, againInMs: period };
    } catch (error) {
      if (!(error instanceof KubeError)) {
        throw error;
      }
      return { againInMs: period };
    }
  }

  /** Of a claim that is deleted. */
  forget(hostname: string): void {
    this.#read.delete(hostname);
  }
}

/** Sends one delivery to its webhook. */

import { GitError, isInCidrs, queriedAddresses, type Resolve, SsrfSafeFetch } from "@slipway/git";
import type { AttemptResult, LeasedWebhookDelivery } from "@slipway/ledger";
import { signedHeaders } from "@slipway/process";
import type { AttemptOutcome } from "./metrics.ts";

/** Milliseconds for one attempt, the whole answer included. */
export const ATTEMPT_TIMEOUT_MS = 15_000;
/** Bytes of an answer that are read, and kept. */
export const ANSWER_BYTES = 1_024;

export interface SenderOptions {
  /** `host:port` whose address may be private. */
  allowedHosts: readonly string[];
  /** PEM certificates of authorities that are trusted beside the public ones. */
  ca?: string;
  /** Ranges of the cluster and its nodes, which may be public ones. */
  deniedCidrs: readonly string[];
  resolve?: Resolve;
  timeoutMs?: number;
}

/** The client of receivers: HTTPS to public addresses alone, no redirect followed, of answers the first bytes read. */
export function receiverClient(options: SenderOptions): SsrfSafeFetch {
  return new SsrfSafeFetch({
    allowedHosts: options.allowedHosts,
    ca: options.ca,
    resolve: options.resolve ?? queriedAddresses,
    timeoutMs: options.timeoutMs ?? ATTEMPT_TIMEOUT_MS,
    maxBytes: ANSWER_BYTES,
    isRefused: isInCidrs(options.deniedCidrs),
    isLenient: true,
  });
}

/** What became of an attempt. */
export interface SentAttempt extends AttemptResult {
  outcome: Exclude<AttemptOutcome, "unsigned">;
  /** Another attempt would fail, too. */
  isFinal?: boolean;
  /** Nothing of the receiver's. */
  isPlatformFault?: boolean;
}

/** Sends a delivery. Never rejects, unless the signal aborts. */
export async function sendDelivery(
  { url, eventId, payload }: Pick<LeasedWebhookDelivery, "url" | "eventId" | "payload">,
  secrets: readonly string[],
  { client, now, signal }: { client: SsrfSafeFetch; now: Date; signal: AbortSignal },
): Promise<SentAttempt> {
  const headers = {
    "content-type": "application/json",
    "user-agent": "Slipway-Webhooks/1",
    ...signedHeaders({ id: eventId, at: now, payload }, secrets),
  };
  try {
    const { status, text } = await client.send(url, { method: "POST", headers, body: payload, signal });
    const outcome = status >= 200 && status < 300 ? "succeeded" : "refused";
    return { outcome, responseCode: status, responseBody: storable(text) };
  } catch (error) {
    signal.throwIfAborted();
    return { outcome: "unreachable", error: errorOf(error) };
  }
}

/** PostgreSQL's text has no NUL. */
const storable = (text: string): string => text.replaceAll("\0", "\uFFFD");

/** A stable word for a failure: messages of sockets contain addresses, which would show a tenant the platform's network. */
function errorOf(error: unknown): string {
  if (!(error instanceof GitError)) {
    return "unreachable";
  }
  if (error.code === "AddressRefused") {
    return "address_refused";
  }
  if (error.code === "CertificateUntrusted") {
    return "certificate_untrusted";
  }
  const { name = "" } = (error.cause ?? {}) as { name?: string };
  return name === "TimeoutError" || name === "AbortError" ? "timeout" : "unreachable";
}

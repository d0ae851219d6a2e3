/** The headers of a delivery, by the rules of Standard Webhooks (https://www.standardwebhooks.com). Pure. */

import { createHmac } from "node:crypto";

/** What every secret begins with, before its bytes in base64. */
const SECRET_PREFIX = "whsec_";

/** A delivery's content. */
export interface SignedContent {
  /** The same in every attempt and redelivery of an event: a receiver that has it may ignore it. */
  id: string;
  /** When this attempt is made: receivers refuse old ones. */
  at: Date;
  payload: string;
}

/**
 * The headers of one attempt.
 * @param secrets each of them signs: while a secret is replaced, the one before it does, too
 */
export function signedHeaders(
  { id, at, payload }: SignedContent,
  secrets: readonly string[],
): Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string> {
  const timestamp = String(Math.floor(at.getTime() / 1_000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${payload}`).digest("base64")}`;
  });
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}

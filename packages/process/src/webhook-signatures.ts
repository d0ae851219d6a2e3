/**
 * Signatures of webhooks, of those that are sent and those that are received: HMAC-SHA-256 over a time and the bytes, by the rules of Standard Webhooks
 * (https://www.standardwebhooks.com) or of Stripe (https://docs.stripe.com/webhooks/signature). Pure.
 */

import { createHmac, timingSafeEqual } from "node:crypto";

/** What every secret of Standard Webhooks begins with, before its bytes in base64. */
const SECRET_PREFIX = "whsec_";

/** How far a signed time may be from now, in seconds: what is recorded on the way cannot be sent again later. */
export const SIGNATURE_TOLERANCE_SECONDS = 300;
const MAC_BYTES = 32;
/** Signatures of one delivery that are compared. */
const MAX_SIGNATURES = 16;

/** A delivery's content. */
export interface SignedContent {
  /** The same in every attempt and redelivery of an event: a receiver that has it may ignore it. */
  id: string;
  /** When this attempt is made: receivers refuse old ones. */
  at: Date;
  payload: string;
}

const standardKey = (secret: string): Buffer => Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");

const macOf = (key: Buffer | string, prefix: string, payload: string | Uint8Array): Buffer =>
  createHmac("sha256", key).update(prefix).update(payload).digest();

/**
 * The headers of one attempt, by Standard Webhooks.
 * @param secrets each of them signs: while a secret is replaced, the one before it does, too
 */
export function signedHeaders(
  { id, at, payload }: SignedContent,
  secrets: readonly string[],
): Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string> {
  const timestamp = String(Math.floor(at.getTime() / 1_000));
  const signatures = secrets.map(
    (secret) => `v1,${macOf(standardKey(secret), `${id}.${timestamp}.`, payload).toString("base64")}`,
  );
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}

/** A delivery as it was received. */
export interface ReceivedWebhook {
  /** As Node gives them: lower-case names. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** As it came, before any parsing. */
  body: Uint8Array;
}

/**
 * The id of a delivery that is signed by Standard Webhooks with one of the secrets, at about this time.
 * @returns undefined where it is not
 */
export function verifiedStandardId(
  { headers, body }: ReceivedWebhook,
  secrets: readonly string[],
  now: Date,
): string | undefined {
  const id = single(headers["webhook-id"]);
  const timestamp = single(headers["webhook-timestamp"]);
  if (id === undefined || timestamp === undefined || !isRecent(timestamp, now)) {
    return undefined;
  }
  const given = (single(headers["webhook-signature"]) ?? "")
    .split(" ")
    .flatMap((one) => (one.startsWith("v1,") ? [Buffer.from(one.slice(3), "base64")] : []));
  const isSigned = isAnyOf(given, secrets, (secret) =>
    macOf(standardKey(secret), `${id}.${timestamp}.`, body),
  );
  return isSigned ? id : undefined;
}

/** Whether a delivery is signed by Stripe with one of the secrets, at about this time. */
export function isSignedByStripe(
  { headers, body }: ReceivedWebhook,
  secrets: readonly string[],
  now: Date,
): boolean {
  const parts = (single(headers["stripe-signature"]) ?? "").split(",").map((part) => part.trim());
  const valuesOf = (name: string) =>
    parts.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1));
  const [timestamp, another] = valuesOf("t");
  if (timestamp === undefined || another !== undefined || !isRecent(timestamp, now)) {
    return false;
  }
  const given = valuesOf("v1").map((digits) => Buffer.from(digits, "hex"));
  return isAnyOf(given, secrets, (secret) => macOf(secret, `${timestamp}.`, body));
}

const single = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

function isRecent(timestamp: string, now: Date): boolean {
  const seconds = /^[0-9]{1,12}$/.test(timestamp) ? Number(timestamp) : Number.NaN;
  return Math.abs(now.getTime() / 1_000 - seconds) <= SIGNATURE_TOLERANCE_SECONDS;
}

/** Compares each with each, so that the time shows nothing of which one is equal. Nothing is computed for what cannot be one. */
function isAnyOf(
  given: readonly Buffer[],
  secrets: readonly string[],
  sign: (secret: string) => Buffer,
): boolean {
  const whole = given.filter(({ length }) => length === MAC_BYTES).slice(0, MAX_SIGNATURES);
  const expected = whole.length === 0 ? [] : secrets.map(sign);
  let isEqual = false;
  for (const one of whole) {
    for (const mac of expected) {
      isEqual = timingSafeEqual(one, mac) || isEqual;
    }
  }
  return isEqual;
}

import type { PaymentEvent } from "@slipway/ledger";

/** Secrets that payment webhooks are signed with. Pure. */

export type PaymentProvider = PaymentEvent["provider"];

/** By provider, as they are now, the newest first; without a member its webhooks are not received. */
export type PaymentSecrets = Partial<Record<PaymentProvider, () => readonly string[]>>;

/** Secrets that are valid at a time: a new one, and those that it replaces. */
const MAX_SECRETS = 10;
const SECRET = /^whsec_[\x21-\x7e]{16,256}$/;
/** Bytes of a key by Standard Webhooks. */
const KEY_MIN_BYTES = 24;

/** A file of secrets, separated by white space. @throws Error that does not show them */
function parseSecrets(text: string): string[] {
  const secrets = text.split(/\s+/).filter((one) => one !== "");
  if (secrets.length === 0 || secrets.length > MAX_SECRETS) {
    throw new Error(`must have 1 to ${MAX_SECRETS} secrets, separated by white space`);
  }
  if (!secrets.every((secret) => SECRET.test(secret))) {
    throw new Error("each secret must begin with whsec_ and have 16 characters or more after it");
  }
  return secrets;
}

/** Of an endpoint's webhooks at Stripe. @throws Error */
export const parseStripeSecrets = parseSecrets;

/** Of the generic form, whose keys are in base64. @throws Error */
export function parseGenericSecrets(text: string): string[] {
  const secrets = parseSecrets(text);
  if (!secrets.every((secret) => isKey(secret.slice("whsec_".length)))) {
    throw new Error(`each secret must be whsec_ and ${KEY_MIN_BYTES} bytes or more in base64`);
  }
  return secrets;
}

const isKey = (text: string): boolean =>
  /^[A-Za-z0-9+/]+={0,2}$/.test(text) && Buffer.from(text, "base64").length >= KEY_MIN_BYTES;

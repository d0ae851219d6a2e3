/** Signatures of hook deliveries: HMAC-SHA-256 over the raw body, as hexadecimal digits. */

import { createHmac, timingSafeEqual } from "node:crypto";

/** Request headers as Node gives them: lower-case names. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

const HEX = /^[0-9a-f]{64}$/;

/** Headers that carry a signature. GitHub's, which Gitea and Forgejo send too, has the algorithm before it. */
const SIGNATURE_HEADERS: readonly { name: string; prefix: string }[] = [
  { name: "x-forgejo-signature", prefix: "" },
  { name: "x-gitea-signature", prefix: "" },
  { name: "x-hub-signature-256", prefix: "sha256=" },
];

/** The signature of a body. */
export function signBody(secret: string, body: Uint8Array): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}

/**
 * Whether a delivery is signed with the secret. It needs one signature at least, and every one that it carries must be
 * right: an empty, doubled or malformed one counts as wrong. An empty secret signs nothing.
 */
export function isSigned(secret: string, body: Uint8Array, headers: Headers): boolean {
  if (secret === "") {
    return false;
  }
  const given = SIGNATURE_HEADERS.filter(({ name }) => headers[name] !== undefined);
  if (given.length === 0) {
    return false;
  }
  const expected = Buffer.from(signBody(secret, body));
  let isRight = true;
  for (const { name, prefix } of given) {
    const value = headers[name];
    const digits = typeof value === "string" && value.startsWith(prefix) ? value.slice(prefix.length) : "";
    const isHex = HEX.test(digits);
    // Compared in any case, so that the time shows nothing of the shape.
    const isEqual = timingSafeEqual(Buffer.from(isHex ? digits : "0".repeat(64)), expected);
    isRight = isRight && isHex && isEqual;
  }
  return isRight;
}

/** Passwords as PostgreSQL keeps them: the server never sees the password itself, not even in a statement. Pure. */

import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";

const ITERATIONS = 4_096;
const KEY_LENGTH = 32;

/**
 * The SCRAM-SHA-256 verifier of a password, as `ALTER ROLE … PASSWORD` accepts it (RFC 5803). ASCII is its own SASLprep
 * form; a password beyond it is normalized as libpq does where that is possible.
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(16)): string {
  const salted = pbkdf2Sync(password.normalize("NFKC"), salt, ITERATIONS, KEY_LENGTH, "sha256");
  const hmac = (text: string) => createHmac("sha256", salted).update(text).digest();
  const stored = createHash("sha256").update(hmac("Client Key")).digest("base64");
  const server = hmac("Server Key").toString("base64");
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString("base64")}$${stored}:${server}`;
}

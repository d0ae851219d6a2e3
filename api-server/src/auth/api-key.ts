import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** Every key starts with it, so that secret scanners recognize it. */
export const API_KEY_PREFIX = "slw";

const ID_BYTES = 8;
const SECRET_BYTES = 32;
const SHAPE = /^slw_([0-9a-f]{16})_([0-9a-f]{64})$/;

export interface GeneratedApiKey {
  /** Public part; names the key in commands, logs and the audit log. */
  id: string;
  /** `slw_<id>_<secret>`: shown once, kept nowhere. */
  key: string;
  sha256: Buffer;
}

/** Makes a key with 256 random bits. */
export function generateApiKey(random: (size: number) => Buffer = randomBytes): GeneratedApiKey {
  const id = random(ID_BYTES).toString("hex");
  const key = `${API_KEY_PREFIX}_${id}_${random(SECRET_BYTES).toString("hex")}`;
  return { id, key, sha256: hashApiKey(key) };
}

/** The id inside a key, or undefined when the text is no key. */
export function apiKeyId(text: string): string | undefined {
  return SHAPE.exec(text)?.[1];
}

export function hashApiKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** Compares in constant time. */
export function matchesApiKey(key: string, sha256: Buffer): boolean {
  const actual = hashApiKey(key);
  return actual.length === sha256.length && timingSafeEqual(actual, sha256);
}

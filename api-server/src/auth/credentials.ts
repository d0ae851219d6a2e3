import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";
import { readFileSync } from "node:fs";
import { errors, jwtVerify, SignJWT } from "jose";

/** The credentials that the platform issues: API keys of organizations and tokens of users. */

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

/** Generates a key with 256 random bits. */
export function generateApiKey(random: (size: number) => Buffer = randomBytes): GeneratedApiKey {
  const id = random(ID_BYTES).toString("hex");
  const key = `${API_KEY_PREFIX}_${id}_${random(SECRET_BYTES).toString("hex")}`;
  return { id, key, sha256: hashApiKey(key) };
}

/** The id inside a key, or undefined when the text is no key. */
export function apiKeyId(text: string): string | undefined {
  return SHAPE.exec(text)?.[1];
}

function hashApiKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** Compares in constant time. */
export function matchesApiKey(key: string, sha256: Buffer): boolean {
  const actual = hashApiKey(key);
  return actual.length === sha256.length && timingSafeEqual(actual, sha256);
}

const ISSUER = "slipway";
const AUDIENCE = "slipway-api";
const ALGORITHM = "EdDSA";

/** Whose a verified token is. */
export interface VerifiedToken {
  userId: string;
  /** Milliseconds since 1970. */
  expiresAt: number;
  /** Milliseconds since 1970, of a token that the platform itself issued. */
  issuedAt?: number;
}

/** Verifies bearer tokens of users. */
export interface UserTokenVerifier {
  /**
   * @returns undefined for a token that is not valid
   * @throws Failure 503 when that cannot be checked now
   */
  verify(token: string): Promise<VerifiedToken | undefined>;
}

/** Signs a token for a user. What the user may do is not in it: that is read from the ledger. */
export async function signUserToken(key: TokenKey, userId: string, lifetimeDays: number): Promise<string> {
  return new SignJWT()
    .setProtectedHeader({ alg: ALGORITHM, typ: "JWT" })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject(userId)
    .setIssuedAt()
    .setExpirationTime(`${lifetimeDays}d`)
    .sign(key.privateKey);
}

/** Accepts tokens that {@link signUserToken} signed with the same key. */
export function ownTokenVerifier(key: TokenKey): UserTokenVerifier {
  return {
    async verify(token) {
      try {
        const { payload } = await jwtVerify(token, key.publicKey, {
          issuer: ISSUER,
          audience: AUDIENCE,
          algorithms: [ALGORITHM],
          requiredClaims: ["sub", "exp", "iat"],
        });
        const { sub, exp, iat } = payload as { sub: string; exp: number; iat: number };
        return { userId: sub, expiresAt: exp * 1000, issuedAt: iat * 1000 };
      } catch (error) {
        if (error instanceof errors.JOSEError) {
          return undefined;
        }
        throw error;
      }
    },
  };
}

export interface TokenKey {
  privateKey: KeyObject;
  publicKey: KeyObject;
}

/**
 * Reads the key that signs user tokens: an Ed25519 private key as PEM (PKCS #8), as
 * `openssl genpkey -algorithm ed25519` and Helm's `genPrivateKey "ed25519"` write it.
 *
 * @throws Error that names the file, never its content
 */
export function readTokenKey(file: string): TokenKey {
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(readFileSync(file));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unreadable";
    throw new Error(`SLIPWAY_TOKEN_KEY_FILE ${file} is no PEM private key (${code})`);
  }
  if (privateKey.asymmetricKeyType !== "ed25519") {
    throw new Error(
      `SLIPWAY_TOKEN_KEY_FILE ${file} holds ${privateKey.asymmetricKeyType}, not an Ed25519 key`,
    );
  }
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

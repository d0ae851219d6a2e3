import { createHash } from "node:crypto";
import { decodeJwt, errors, type JWTVerifyGetKey, jwtVerify } from "jose";
import { failures } from "../errors/catalog.ts";
import type { UserTokenVerifier } from "./credentials.ts";
import { IssuerUnavailable, type OidcIssuer, type OidcKeysOptions, oidcKeys } from "./oidc-issuer.ts";

/** Signatures by a private key alone: with a shared secret, every verifier could also sign. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
/** How far the issuer's clock may differ. */
const CLOCK_TOLERANCE_SECONDS = 30;
/** What OpenID Connect allows a subject to be. */
const PLAIN_SUBJECT = /^[\x21-\x7e]{1,255}$/;

/**
 * The user id of an issuer's subject, at most 300 characters: `oidc:<16 hex of the issuer>:<subject>`, or with the
 * subject's own digest where it is longer, or of other letters, than OpenID Connect allows.
 */
export function oidcUserId(issuer: string, subject: string): string {
  const digest = (text: string) => createHash("sha256").update(text).digest("hex");
  const from = digest(issuer).slice(0, 16);
  return PLAIN_SUBJECT.test(subject) ? `oidc:${from}:${subject}` : `oidc-digest:${from}:${digest(subject)}`;
}

/** The token's claim of its issuer, not verified yet. */
function claimedIssuer(token: string): string | undefined {
  try {
    return decodeJwt(token).iss;
  } catch {
    return undefined;
  }
}

/**
 * Accepts tokens of the given issuers. What their users may do is not in the token: that is in the ledger.
 * @throws Failure 503 from `verify` while the keys of the token's issuer cannot be had
 */
export function oidcVerifier(
  issuers: readonly OidcIssuer[],
  options: Partial<OidcKeysOptions> = {},
): UserTokenVerifier {
  const known = new Map<string, OidcIssuer & { keys: JWTVerifyGetKey }>(
    issuers.map((issuer) => [issuer.issuer, { ...issuer, keys: oidcKeys(issuer, options) }]),
  );
  return {
    async verify(token) {
      const issuer = known.get(claimedIssuer(token) ?? "");
      if (!issuer) {
        return undefined;
      }
      try {
        const { payload } = await jwtVerify(token, issuer.keys, {
          issuer: issuer.issuer,
          audience: issuer.audience,
          algorithms: ALGORITHMS,
          clockTolerance: CLOCK_TOLERANCE_SECONDS,
          requiredClaims: ["sub", "exp"],
        });
        const { sub, exp } = payload;
        if (typeof sub !== "string" || sub === "" || exp === undefined) {
          return undefined;
        }
        return {
          userId: oidcUserId(issuer.issuer, sub),
          expiresAt: (exp + CLOCK_TOLERANCE_SECONDS) * 1000,
        };
      } catch (error) {
        if (error instanceof IssuerUnavailable) {
          throw failures.issuerUnavailable();
        }
        // A key that WebCrypto does not accept, or bytes that are none, is a TypeError or a DOMException.
        if (
          error instanceof errors.JOSEError ||
          error instanceof TypeError ||
          error instanceof DOMException
        ) {
          return undefined;
        }
        throw error;
      }
    },
  };
}

/** The first verifier that recognizes the token decides. */
export function anyVerifier(...verifiers: readonly UserTokenVerifier[]): UserTokenVerifier {
  return {
    async verify(token) {
      for (const verifier of verifiers) {
        const verified = await verifier.verify(token);
        if (verified) {
          return verified;
        }
      }
      return undefined;
    },
  };
}

import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomUUID,
  sign,
  verify,
} from "node:crypto";
import { ORGANIZATION_ID } from "./names.ts";

/** `iss` of the tokens of the builds' registry, and its issuer setting. */
export const registryIssuer = "slipway";
/** `aud` of them, and the registry's service setting. */
export const registryService = "slipway-registry";

/** What a token allows on one repository: `<organization id>/<project id>` or `base/<runtime>`. */
export interface RegistryAccess {
  repository: string;
  actions: ("pull" | "push" | "delete")[];
}

/** A public key of the set by which the registry knows who signs (RFC 7517, P-256). */
export interface RegistryKey {
  kty: string;
  crv: string;
  x: string;
  y: string;
  kid: string;
  alg: "ES256";
  use: "sig";
}

/** The key set that the registry reads, for the PEM private key (ECDSA on P-256) that signs its tokens. */
export function registryKeySet(privateKey: string): { keys: RegistryKey[] } {
  const {
    kty = "",
    crv = "",
    x = "",
    y = "",
  } = createPublicKey(createPrivateKey(privateKey)).export({ format: "jwk" });
  if (kty !== "EC" || crv !== "P-256") {
    throw new Error("the registry's key is no ECDSA key on P-256");
  }
  return { keys: [{ kty, crv, x, y, kid: thumbprint({ crv, kty, x, y }), alg: "ES256", use: "sig" }] };
}

/** Name of a key by its content (RFC 7638): the members in this order, without spaces. */
function thumbprint(key: { crv: string; kty: string; x: string; y: string }): string {
  return createHash("sha256").update(JSON.stringify(key)).digest("base64url");
}

/**
 * A token for the builds' registry, in the form of the distribution project's token specification. Clients send it as
 * `Authorization: Bearer`; in a Docker configuration file it is `registrytoken`.
 * @param privateKey PEM, as in the Secret `slipway-registry-key`
 * @param lifetime seconds; the registry allows a minute more for clocks that differ
 */
export function mintRegistryToken(
  privateKey: string,
  subject: string,
  access: RegistryAccess[],
  lifetime: number,
  now: Date = new Date(),
): string {
  return signed(privateKey, lifetime, now, {
    aud: registryService,
    sub: subject,
    access: access.map(({ repository, actions }) => ({ type: "repository", name: repository, actions })),
  });
}

/** Secret of an organization's namespace with which its nodes pull what was built; the operator keeps it. */
export const BUILDS_PULL_SECRET = "slipway-builds-registry";

/** `aud` of passwords by which an organization's nodes get tokens to pull: no registry takes them for one. */
const registryPullAudience = "slipway-registry-pull";

/**
 * The password of an organization's imagePullSecret, a JWT that the registry's realm gives tokens for: to pull from repositories
 * of the organization that the claim `org` names, and no others.
 * @param lifetime seconds
 */
export function mintRegistryPassword(
  privateKey: string,
  organizationId: string,
  lifetime: number,
  now: Date = new Date(),
): string {
  return signed(privateKey, lifetime, now, {
    aud: registryPullAudience,
    sub: `organization/${organizationId}`,
    org: organizationId,
  });
}

/** The organization that a password is of; undefined of one that is over, and of one that nobody with the key has made. */
export function organizationOfRegistryPassword(
  privateKey: string,
  password: string,
  now: Date = new Date(),
): string | undefined {
  if (password.length > 4_096) {
    return undefined;
  }
  const [header, claims, signature, ...rest] = password.split(".");
  if (header === undefined || claims === undefined || signature === undefined || rest.length > 0) {
    return undefined;
  }
  const key = createPublicKey(createPrivateKey(privateKey));
  const text = Buffer.from(`${header}.${claims}`);
  const bytes = Buffer.from(signature, "base64url");
  if (!verify("sha256", text, { key, dsaEncoding: "ieee-p1363" }, bytes)) {
    return undefined;
  }
  const { iss, aud, org, exp } = JSON.parse(Buffer.from(claims, "base64url").toString("utf8")) as Record<
    string,
    unknown
  >;
  // Tokens of the registry have the same issuer and key, and another audience.
  if (iss !== registryIssuer || aud !== registryPullAudience) {
    return undefined;
  }
  const holds = typeof exp === "number" && now.getTime() < exp * 1000;
  return holds && typeof org === "string" && ORGANIZATION_ID.test(org) ? org : undefined;
}

function signed(privateKey: string, lifetime: number, now: Date, more: Record<string, unknown>): string {
  const key: KeyObject = createPrivateKey(privateKey);
  const header = { typ: "JWT", alg: "ES256", kid: registryKeySet(privateKey).keys[0]?.kid };
  const seconds = Math.floor(now.getTime() / 1000);
  const claims = {
    iss: registryIssuer,
    nbf: seconds,
    iat: seconds,
    exp: seconds + lifetime,
    jti: randomUUID(),
    ...more,
  };
  const text = [header, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  // JWS wants the two numbers of the signature side by side, not DER (RFC 7515, appendix A.3).
  const signature = sign("sha256", Buffer.from(text), { key, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
}

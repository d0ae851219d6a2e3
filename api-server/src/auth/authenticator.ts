import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { type ApiKeyRecord, type FoundMember, findApiKey, findMember, type Ledger } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import { GrantSet } from "../policy/permissions.ts";
import {
  API_KEY_PREFIX,
  apiKeyId,
  matchesApiKey,
  type UserTokenVerifier,
  type VerifiedToken,
} from "./credentials.ts";
import { FailedAttempts } from "./failed-attempts.ts";
import { type Principal, PrincipalCache } from "./principal.ts";

/** Authenticates requests by API key or user token, with a cache of what the ledger has of the credential. */

/** What the authenticator reads of the ledger. */
export interface CredentialSource {
  findApiKey(id: string): Promise<ApiKeyRecord | undefined>;
  findMember(userId: string, organizationId: string): Promise<FoundMember | undefined>;
}

export const ledgerCredentials = (ledger: Ledger): CredentialSource => ({
  findApiKey: (id) => findApiKey(ledger, id),
  findMember: (userId, organizationId) => findMember(ledger, userId, organizationId),
});

const KEY_START = `${API_KEY_PREFIX}_`;
const BEARER = /^bearer +(\S+) *$/i;
/** Longer headers are no credential of ours, and are not worth remembering. */
const LONGEST_CREDENTIAL = 8_192;
const ORGANIZATION_ID = /^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/;
const MAX_TOKENS = 10_000;
/** How long a verified signature is trusted: the issuer may withdraw its key meanwhile. */
const VERIFIED_MS = 5 * 60_000;

/** Finds out who sent a request. Answers from memory; queries the ledger every few seconds per credential. */
export class Authenticator {
  readonly #source: CredentialSource;
  readonly #verifier: UserTokenVerifier;
  readonly #cache: PrincipalCache;
  readonly #attempts: FailedAttempts;
  readonly #tokens = new Map<string, VerifiedToken & { validUntil: number }>();

  constructor(
    source: CredentialSource,
    verifier: UserTokenVerifier,
    cache = new PrincipalCache(),
    attempts = new FailedAttempts(),
  ) {
    this.#source = source;
    this.#verifier = verifier;
    this.#cache = cache;
    this.#attempts = attempts;
  }

  /**
   * The principal: immediately when it is in memory, else as a promise.
   * @param address of the client, against which a credential that is not valid counts
   * @throws Failure 401 without a valid credential, 403 for the wrong organization, 429 for an unknown credential of an
   *   address with too many that were not valid, 503 when the ledger is needed and unavailable
   */
  authenticate(headers: IncomingHttpHeaders, address = () => ""): Principal | Promise<Principal> {
    const organization = headers["x-organization-id"];
    const organizationId = typeof organization === "string" ? organization : undefined;
    const apiKey = headers["x-api-key"];
    // What is in memory under such a text was a well-formed key when it came in, and no token: its shape is not checked
    // twice.
    const known = typeof apiKey === "string" && apiKey.startsWith(KEY_START) && this.#cache.peek(apiKey);
    if (known) {
      return admit(known.principal, organizationId);
    }
    const credential = credentialOf(headers);
    if (apiKeyId(credential) !== undefined) {
      return this.#byApiKey(credential, organizationId, address);
    }
    return this.#byToken(credential, organizationId, address);
  }

  #byApiKey(
    key: string,
    organizationId: string | undefined,
    address: () => string,
  ): Principal | Promise<Principal> {
    const known = this.#cache.peek(key);
    if (known) {
      return admit(known.principal, organizationId);
    }
    const found = this.#lookUp(key, () => this.#loadApiKey(key), address);
    return found.then((principal) => admit(principal, organizationId));
  }

  /** Queries the ledger, unless the address had too many failed attempts; a known credential is always queried. */
  async #lookUp(
    credential: string,
    load: () => Promise<Principal | undefined>,
    address: () => string,
  ): Promise<Principal | undefined> {
    if (!this.#cache.knows(credential)) {
      this.#attempts.admit(address());
    }
    const principal = await this.#cache.get(credential, () => withLedgerErrors(load));
    if (!principal) {
      this.#attempts.count(address());
    }
    return principal;
  }

  #byToken(
    token: string,
    organizationId: string | undefined,
    address: () => string,
  ): Principal | Promise<Principal> {
    // Remembered by their digest: tokens of issuers are long.
    const digest = hash("sha256", token, "base64url");
    const known = organizationId && this.#cache.peek(`${organizationId} ${digest}`);
    if (known) {
      return admitUser(known.principal);
    }
    return this.#verifyToken(token, digest, organizationId, address);
  }

  async #verifyToken(
    token: string,
    digest: string,
    organizationId: string | undefined,
    address: () => string,
  ): Promise<Principal> {
    const verified = await this.#verified(token, digest, address);
    if (!verified || verified.expiresAt <= Date.now()) {
      this.#tokens.delete(digest);
      throw failures.credentialInvalid();
    }
    if (organizationId === undefined || organizationId === "") {
      throw failures.organizationRequired();
    }
    if (!ORGANIZATION_ID.test(organizationId)) {
      throw failures.organizationForbidden();
    }
    const load = () => this.#loadMember(verified, organizationId);
    return admitUser(await this.#lookUp(`${organizationId} ${digest}`, load, address));
  }

  async #verified(token: string, digest: string, address: () => string): Promise<VerifiedToken | undefined> {
    const known = this.#tokens.get(digest);
    if (known && known.validUntil > performance.now()) {
      return known;
    }
    if (!known) {
      this.#attempts.admit(address());
    }
    const verified = await this.#verifier.verify(token);
    if (!verified) {
      this.#attempts.count(address());
      return undefined;
    }
    if (this.#tokens.size >= MAX_TOKENS) {
      this.#tokens.clear();
    }
    this.#tokens.set(digest, { ...verified, validUntil: performance.now() + VERIFIED_MS });
    return verified;
  }

  async #loadApiKey(key: string): Promise<Principal | undefined> {
    const record = await this.#source.findApiKey(apiKeyId(key) ?? "");
    if (!record || !matchesApiKey(key, record.sha256)) {
      return undefined;
    }
    const actor = `api-key:${record.id}`;
    return {
      credentialId: actor,
      actor,
      organizationId: record.organizationId,
      kind: "api-key",
      grants: GrantSet.of(record.grants),
    };
  }

  async #loadMember(token: VerifiedToken, organizationId: string): Promise<Principal | undefined> {
    const member = await this.#source.findMember(token.userId, organizationId);
    if (!member) {
      return undefined;
    }
    return {
      credentialId: `user:${member.userId}@${organizationId}`,
      actor: `user:${member.userId}`,
      organizationId,
      kind: "user",
      role: member.role,
      grants: member.role === "owner" ? GrantSet.full() : GrantSet.of(member.grants),
      expiresAt: isRevoked(token, member) ? 0 : token.expiresAt,
    };
  }
}

/** Issued up to the moment up to which the user's tokens are revoked. The time of issue is in whole seconds. */
function isRevoked({ issuedAt }: VerifiedToken, { tokensRevokedAt }: FoundMember): boolean {
  return issuedAt !== undefined && tokensRevokedAt !== undefined && issuedAt <= tokensRevokedAt.getTime();
}

/** The text of the credential. @throws Failure 401 when there is none */
function credentialOf(headers: IncomingHttpHeaders): string {
  const apiKey = headers["x-api-key"];
  if (typeof apiKey === "string" && apiKey !== "") {
    // A user token is a bearer token: only an API key may come in x-api-key.
    if (apiKeyId(apiKey) === undefined) {
      throw failures.credentialInvalid();
    }
    return apiKey;
  }
  const authorization = headers.authorization;
  if (authorization === undefined || authorization === "") {
    throw failures.credentialMissing();
  }
  const token = BEARER.exec(authorization)?.[1];
  if (token === undefined || token.length > LONGEST_CREDENTIAL) {
    throw failures.credentialInvalid();
  }
  return token;
}

function admit(principal: Principal | undefined, organizationId: string | undefined): Principal {
  if (!principal) {
    throw failures.credentialInvalid();
  }
  if (organizationId !== undefined && organizationId !== "" && organizationId !== principal.organizationId) {
    throw failures.organizationForbidden();
  }
  return principal;
}

function admitUser(principal: Principal | undefined): Principal {
  if (!principal) {
    throw failures.organizationForbidden();
  }
  if (principal.expiresAt !== undefined && principal.expiresAt <= Date.now()) {
    throw failures.credentialInvalid();
  }
  return principal;
}

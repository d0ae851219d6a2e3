import {
  mintRegistryToken,
  organizationOfRegistryPassword,
  type RegistryAccess,
  registryService,
} from "@slipway/crds";
import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import { defineRoute } from "../http/route.ts";
import type { Services } from "../services.ts";

/** Issues tokens of the builds' registry, by which nodes pull an organization's images. */

/** How long a token is valid, in seconds: the pull of a large image requests another. */
const LIFETIME = 300;

/** A request to the realm, in either form. */
export interface TokenRequest {
  username: string | undefined;
  password: string | undefined;
  service: string | undefined;
  scopes: readonly string[];
}

/** `Authorization: Basic`; undefined when it is none. */
export function basicCredential(
  header: string | undefined,
): { username: string; password: string } | undefined {
  const encoded = /^Basic ([A-Za-z0-9+/=]{1,8192})$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) {
    return undefined;
  }
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  return colon < 0 ? undefined : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** The form of `POST`, as OAuth2 has it. @throws Failure 400 for another grant than a password */
export function formRequest(body: Buffer): TokenRequest {
  const form = new URLSearchParams(body.toString("utf8"));
  const grant = form.get("grant_type");
  if (grant !== "password") {
    throw failures.malformedBody("grant_type must be password");
  }
  return {
    username: form.get("username") ?? undefined,
    password: form.get("password") ?? undefined,
    service: form.get("service") ?? undefined,
    scopes: form.getAll("scope"),
  };
}

/**
 * Exchanges an organization's password for a token of the registry.
 * @throws Failure 400 for another service, 401 for a password that is none
 */
export function exchange({ password, service, scopes }: TokenRequest, privateKey: string, now: Date) {
  if (service !== undefined && service !== registryService) {
    throw failures.validation([{ field: "service", message: `must be ${registryService}` }]);
  }
  if (password === undefined) {
    throw failures.credentialMissing();
  }
  const organizationId = organizationOfRegistryPassword(privateKey, password, now);
  if (organizationId === undefined) {
    throw failures.credentialInvalid();
  }
  const access = grantedAccess(organizationId, scopes);
  const token = mintRegistryToken(privateKey, `organization/${organizationId}`, access, LIFETIME, now);
  return {
    token,
    access_token: token,
    expires_in: LIFETIME,
    issued_at: now.toISOString(),
    token_type: "Bearer",
  };
}

/** Scopes of the distribution project's token specification: `repository:<name>:<action>,<action>`. */

/** Scopes of one request. */
const MAX_SCOPES = 16;
/** An organization's images are in `<organization id>/<project id>`. */
const SCOPE = /^repository:([a-z0-9-]+\/[a-z0-9-]+):([a-z*]+(?:,[a-z*]+)*)$/;

/**
 * What of the scopes a node of an organization gets: to pull that organization's images, and nothing else. What is not granted is
 * left out, as the specification has it. Pure.
 * @param scopes each may have several, with spaces between
 */
export function grantedAccess(organizationId: string, scopes: readonly string[]): RegistryAccess[] {
  return scopes
    .flatMap((scope) => scope.split(" "))
    .slice(0, MAX_SCOPES)
    .flatMap((scope) => {
      const [, repository = "", actions = ""] = SCOPE.exec(scope) ?? [];
      const isOwn = repository.startsWith(`${organizationId}/`);
      return isOwn && actions.split(",").includes("pull") ? [{ repository, actions: ["pull" as const] }] : [];
    });
}

/** The realm of the builds' registry: nodes exchange their organization's password for tokens. Not of `/v1`: its form is the registry's. */

const PATH = "/registry/token";
const responses = {
  200: {
    description: "A token.",
    schema: z.object({
      token: z.string(),
      access_token: z.string(),
      expires_in: z.int(),
      issued_at: z.string(),
      token_type: z.literal("Bearer"),
    }),
  },
};

function answer(request: TokenRequest, { builds, now }: Pick<Services, "builds" | "now">) {
  const key = builds.registryKey();
  if (key === undefined) {
    throw failures.registryUnavailable();
  }
  return { status: 200, headers: { "cache-control": "no-store" }, body: exchange(request, key, now()) };
}

const one = z.string().max(2_048);
const query = z.strictObject({
  // What nodes send besides, and nothing depends on.
  account: one.optional(),
  client_id: one.optional(),
  offline_token: one.optional(),
  service: one.optional(),
  scope: z.union([one, z.array(one).max(16)]).optional(),
});

export const readRegistryToken = defineRoute({
  operationId: "readRegistryToken",
  method: "GET",
  path: PATH,
  summary: "A token of the builds' registry, by Basic authentication",
  tags: ["Registry"],
  query,
  undocumented: true,
  responses,
  handler: ({ query: { service, scope }, request }, services) => {
    const credential = basicCredential(request.headers.authorization);
    const scopes = scope === undefined ? [] : [scope].flat();
    return answer(
      { username: credential?.username, password: credential?.password, service, scopes },
      services,
    );
  },
});

export const createRegistryToken = defineRoute({
  operationId: "createRegistryToken",
  method: "POST",
  path: PATH,
  summary: "A token of the builds' registry, by a form",
  tags: ["Registry"],
  undocumented: true,
  rawBody: true,
  bodyLimit: 16 * 1024,
  responses,
  handler: ({ body }, services) =>
    answer(formRequest(Buffer.isBuffer(body) ? body : Buffer.alloc(0)), services),
});

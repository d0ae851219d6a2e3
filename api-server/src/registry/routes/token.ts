import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineRoute } from "../../http/route.ts";
import type { Services } from "../../services.ts";
import { basicCredential, exchange, formRequest, type TokenRequest } from "../token.ts";

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

import type { GitConnection } from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { type Call, defineRoute } from "../../http/route.ts";
import { atLeastOneField } from "../../http/validate.ts";
import { success } from "../../projects/routes/schemas.ts";
import type { Services } from "../../services.ts";
import { findConnection, listConnections } from "../cluster.ts";
import { connect, replaceCredential } from "../connect.ts";
import { revoke } from "../revoke.ts";
import {
  connectionSchema,
  connectionView,
  displayName,
  instanceUrl,
  repositoryPath,
  token,
  username,
} from "../view.ts";

type AboutConnection = Pick<Call<unknown, unknown, unknown>, "principal" | "request">;

/** Concurrency in one process of the operations that wait for tenants' servers. */
export const MAX_CONCURRENT = 16;

/** The connection of the path, of the caller's organization. @throws Failure 404, 503 */
export function connectionOf(
  { principal, request }: AboutConnection,
  { kube }: Pick<Services, "kube">,
): Promise<GitConnection> {
  const { connectionId } = request.params as { connectionId: string };
  return findConnection(kube, (principal as Principal).organizationId, connectionId);
}

export const listGitConnections = defineRoute({
  operationId: "listGitConnections",
  method: "GET",
  path: "/v1/git/connections",
  summary: "List Git connections",
  description:
    "All of the organization, the oldest first; revoked ones as long as hooks of theirs are left at the server.",
  tags: ["Git"],
  responses: {
    200: {
      description: "All of them.",
      schema: success({ data: z.object({ connections: z.array(connectionSchema) }) }),
    },
  },
  handler: async ({ principal }, services) => {
    const found = await listConnections(services.kube, (principal as Principal).organizationId);
    return { status: 200, body: { status: "success", data: { connections: found.map(connectionView) } } };
  },
});

const creationBody = z.strictObject({
  provider_id: z.enum(["forgejo"]).describe("Gitea is connected as forgejo."),
  instance_url: instanceUrl,
  display_name: displayName,
  repository_path: repositoryPath,
  username,
  token,
});

export const createGitConnection = defineRoute({
  operationId: "createGitConnection",
  method: "POST",
  path: "/v1/git/connections",
  summary: "Connect a Git server",
  description:
    "The credential is tried before anything is kept: the server must take it, and it must see the repository. It is kept in a " +
    "Secret of the organization and never returned.",
  tags: ["Git"],
  body: creationBody,
  responses: {
    201: {
      description: "Connected.",
      schema: success({ message: z.string(), data: z.object({ connection: connectionSchema }) }),
    },
  },
  refusals: [409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async ({ principal, body: sent }, services) => {
    const request = {
      instanceUrl: sent.instance_url,
      displayName: sent.display_name,
      repositoryPath: sent.repository_path,
      username: sent.username,
      token: sent.token,
    };
    const connection = await connect(request, (principal as Principal).organizationId, services);
    const data = { connection: connectionView(connection) };
    return { status: 201, body: { status: "success", message: "connected", data } };
  },
});

const credentialsBody = atLeastOneField(
  z.strictObject({
    repository_path: repositoryPath.optional(),
    username: username.optional(),
    token: token.optional(),
  }),
  "at least one field is required",
);

export const updateGitCredentials = defineRoute({
  operationId: "updateGitCredentials",
  method: "PATCH",
  path: "/v1/git/connections/:connectionId/credentials",
  summary: "Replace a connection's credential",
  description:
    "What is not sent stays. The whole is tried as when a server is connected; when it fails, the old one stays.",
  tags: ["Git"],
  body: credentialsBody,
  responses: {
    200: {
      description: "Replaced.",
      schema: success({ message: z.string(), data: z.object({ connection: connectionSchema }) }),
    },
  },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const connection = await connectionOf(call, services);
    const { repository_path: path, username: name, token: secret } = call.body;
    const change = { repositoryPath: path, username: name, token: secret };
    const data = { connection: connectionView(await replaceCredential(connection, change, services)) };
    return { status: 200, body: { status: "success", message: "credential replaced", data } };
  },
});

export const revokeGitConnection = defineRoute({
  operationId: "revokeGitConnection",
  method: "DELETE",
  path: "/v1/git/connections/:connectionId",
  summary: "Revoke a Git connection",
  description:
    "From a success on, nothing uses the credential any more. `cleanup_pending` reports that hooks are left at the server, which did " +
    "not answer: the connection is listed as revoked until calling this again has removed them. While a build uses the " +
    "connection it is refused, and the connection stays active.",
  tags: ["Git"],
  responses: {
    200: {
      description: "Revoked.",
      schema: success({
        message: z.string(),
        data: z.object({ connection: connectionSchema, cleanup_pending: z.boolean() }),
      }),
    },
  },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const { connection, cleanupPending } = await revoke(await connectionOf(call, services), services);
    const data = { connection: connectionView(connection), cleanup_pending: cleanupPending };
    return { status: 200, body: { status: "success", message: "the connection is revoked", data } };
  },
});

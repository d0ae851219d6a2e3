import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { connect } from "../connect.ts";
import { connectionView } from "../view.ts";
import { MAX_CONCURRENT } from "./lookup.ts";
import { connectionSchema, displayName, instanceUrl, repositoryPath, token, username } from "./schemas.ts";

const body = z.strictObject({
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
  body,
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

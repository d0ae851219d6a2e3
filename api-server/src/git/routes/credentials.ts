import { z } from "zod";
import { defineRoute } from "../../http/route.ts";
import { atLeastOneField } from "../../http/schemas.ts";
import { success } from "../../projects/routes/schemas.ts";
import { replaceCredential } from "../connect.ts";
import { connectionView } from "../view.ts";
import { connectionOf, MAX_CONCURRENT } from "./lookup.ts";
import { connectionSchema, repositoryPath, token, username } from "./schemas.ts";

const body = atLeastOneField(
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
  body,
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

import { z } from "zod";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { askServer } from "../connect.ts";
import { repositoryView } from "../view.ts";
import { connectionOf, MAX_CONCURRENT } from "./lookup.ts";
import { repositoryPath, repositorySchema } from "./schemas.ts";

export const resolveGitRepository = defineRoute({
  operationId: "resolveGitRepository",
  method: "POST",
  path: "/v1/git/connections/:connectionId/repositories/resolve",
  summary: "Find a repository by its path",
  tags: ["Git"],
  body: z.strictObject({ path: repositoryPath }),
  responses: { 200: { description: "It is there.", schema: success({ data: repositorySchema }) } },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const connection = await connectionOf(call, services);
    const repository = await askServer(connection, services, (server) => server.resolve(call.body.path));
    const data = repositoryView(connection.metadata.name, repository, services.repositoryIds);
    return { status: 200, body: { status: "success", data } };
  },
});

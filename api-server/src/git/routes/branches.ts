import { z } from "zod";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { askServer } from "../connect.ts";
import { connectionOf, MAX_CONCURRENT } from "./lookup.ts";

export const listGitBranches = defineRoute({
  operationId: "listGitBranches",
  method: "GET",
  path: "/v1/git/connections/:connectionId/repositories/:repositoryId/branches",
  summary: "List the branches of a repository",
  description: "At most 1,000. The repository's id is one path segment: encode it.",
  tags: ["Git"],
  responses: {
    200: {
      description: "Its branches.",
      schema: success({ data: z.array(z.object({ name: z.string(), commit_sha: z.string() })) }),
    },
  },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const connection = await connectionOf(call, services);
    const { repositoryId } = call.request.params as { repositoryId: string };
    const branches = await askServer(connection, services, async (server) =>
      server.branches(services.repositoryIds.open(connection.metadata.name, repositoryId)),
    );
    const data = branches.map(({ name, commitSha }) => ({ name, commit_sha: commitSha }));
    return { status: 200, body: { status: "success", data } };
  },
});

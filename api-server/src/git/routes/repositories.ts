import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { callServer } from "../connect.ts";
import { repositoryPath, repositorySchema, repositoryView } from "../view.ts";
import { connectionOf, MAX_CONCURRENT } from "./connections.ts";

export const listGitRepositories = defineRoute({
  operationId: "listGitRepositories",
  method: "GET",
  path: "/v1/git/connections/:connectionId/repositories",
  summary: "List the repositories that a connection sees",
  description:
    "Only of connections with the capability `repositoryDiscovery`; others resolve repositories by their paths.",
  tags: ["Git"],
  query: z.strictObject({
    cursor: z.string().min(1).max(128).describe("`next_cursor` of the page before.").optional(),
  }),
  responses: {
    200: {
      description: "One page.",
      schema: success({
        data: z.object({
          repositories: z.array(repositorySchema),
          next_cursor: z.string().nullable().describe("Null: that was the last page."),
        }),
      }),
    },
  },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const connection = await connectionOf(call, services);
    if (connection.status?.capabilities?.repositoryDiscovery === false) {
      throw failures.gitCapabilityUnavailable("the connection's credential may not list repositories");
    }
    const page = await callServer(connection, services, (server) => server.repositories(call.query.cursor));
    const data = {
      repositories: page.items.map((one) =>
        repositoryView(connection.metadata.name, one, services.repositoryIds),
      ),
      next_cursor: page.nextCursor ?? null,
    };
    return { status: 200, body: { status: "success", data } };
  },
});

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
    const branches = await callServer(connection, services, async (server) =>
      server.branches(services.repositoryIds.open(connection.metadata.name, repositoryId)),
    );
    const data = branches.map(({ name, commitSha }) => ({ name, commit_sha: commitSha }));
    return { status: 200, body: { status: "success", data } };
  },
});

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
    const repository = await callServer(connection, services, (server) => server.resolve(call.body.path));
    const data = repositoryView(connection.metadata.name, repository, services.repositoryIds);
    return { status: 200, body: { status: "success", data } };
  },
});

import { runtimeIds } from "@slipway/builder";
import { providerIds } from "@slipway/git";
import { z } from "zod";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { capabilities } from "../view.ts";

const ABLE = { repositoryDiscovery: true, pushDeploy: true, nativePreviews: false, versionDeploy: true };
const UNABLE = { repositoryDiscovery: false, pushDeploy: false, nativePreviews: false, versionDeploy: false };

/** Gitea is connected as forgejo. GitHub needs an App of the platform; GitLab is not supported. */
const providersOf = (hasGithubApp: boolean) => [
  { id: "github", available: hasGithubApp, ...(hasGithubApp ? ABLE : UNABLE) },
  { id: "forgejo", available: true, ...ABLE },
  { id: "gitlab", available: false, ...UNABLE },
];

export const gitProviders = defineRoute({
  operationId: "listGitProviders",
  method: "GET",
  path: "/v1/git/providers",
  summary: "List Git providers",
  description:
    "What this platform can connect, and what a connection may be able to do at most. Accounts of GitHub are connected by the " +
    "platform's administrator.",
  tags: ["Git"],
  responses: {
    200: {
      description: "Every provider that is known, those that cannot be connected too.",
      schema: success({
        data: z.object({
          api_version: z.literal("v1"),
          providers: z.array(
            z.object({ id: z.enum(providerIds), available: z.boolean(), ...capabilities.shape }),
          ),
        }),
      }),
    },
  },
  handler: (_call, { git }) => {
    const data = { api_version: "v1", providers: providersOf(git.hasGithubApp) };
    return { status: 200, body: { status: "success", data } };
  },
});

export const runtimeCatalog = defineRoute({
  operationId: "listGitRuntimes",
  method: "GET",
  path: "/v1/git/runtime-catalog",
  summary: "List runtimes",
  description: "What applications can be built for from a Git repository, in which versions.",
  tags: ["Git"],
  responses: {
    200: {
      description: "Every runtime, those that this platform has nothing to build with too.",
      schema: success({
        data: z.object({
          runtimes: z.array(
            z.object({
              id: z.enum(runtimeIds),
              name: z.string(),
              available: z.boolean(),
              versions: z.array(z.string()),
              default_version: z.string().nullable(),
            }),
          ),
        }),
      }),
    },
  },
  handler: (_call, services) => ({
    status: 200,
    body: { status: "success", data: { runtimes: services.runtimes() } },
  }),
});

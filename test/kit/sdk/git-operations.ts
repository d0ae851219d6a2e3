import { absent, type Operation, type OperationId, on, type Subjects } from "./operation.ts";

const connection = { params: { path: { connectionId: absent.connection } } };
const build = ({ app: id }: Subjects) => ({ params: { path: { id, buildId: absent.build } } });
const noConnection = "404 GIT_CONNECTION_NOT_FOUND";

/** Operations on connections to Git servers, sources of projects and their builds. */
export const gitOperations = {
  listGitProviders: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/git/providers") },
  listGitRuntimes: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/git/runtime-catalog") },
  listGitConnections: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/git/connections") },
  createGitConnection: {
    answer: "403 OWNER_SESSION_REQUIRED",
    call: ({ slipway }) =>
      slipway.POST("/v1/git/connections", {
        body: {
          provider_id: "forgejo",
          instance_url: "https://git.example.com",
          display_name: "Company Git",
          repository_path: "acme/shop",
          username: "slipway",
          token: "token",
        },
      }),
  },
  updateGitCredentials: {
    answer: "403 OWNER_SESSION_REQUIRED",
    call: ({ slipway }) =>
      slipway.PATCH("/v1/git/connections/{connectionId}/credentials", {
        ...connection,
        body: { token: "other" },
      }),
  },
  revokeGitConnection: {
    answer: "403 OWNER_SESSION_REQUIRED",
    call: ({ slipway }) => slipway.DELETE("/v1/git/connections/{connectionId}", connection),
  },
  resolveGitRepository: {
    answer: noConnection,
    call: ({ slipway }) =>
      slipway.POST("/v1/git/connections/{connectionId}/repositories/resolve", {
        ...connection,
        body: { path: "acme/shop" },
      }),
  },
  listGitRepositories: {
    answer: noConnection,
    call: ({ slipway }) => slipway.GET("/v1/git/connections/{connectionId}/repositories", connection),
  },
  listGitBranches: {
    answer: noConnection,
    call: ({ slipway }) =>
      slipway.GET("/v1/git/connections/{connectionId}/repositories/{repositoryId}/branches", {
        params: { path: { connectionId: absent.connection, repositoryId: absent.repository } },
      }),
  },
  receiveGitHook: {
    answer: "401 GIT_DELIVERY_UNSIGNED",
    call: ({ slipway }) => slipway.POST("/v1/git/hooks/{connectionId}", { ...connection, body: {} }),
  },
  readProjectSource: {
    answer: "200",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/source", on(app)),
  },
  updateProjectSource: {
    answer: "409 GIT_CONNECTION_UNAVAILABLE",
    call: ({ slipway, app }) =>
      slipway.PUT("/v1/project/{id}/source", {
        ...on(app),
        body: {
          source: {
            connection_id: absent.connection,
            repository_id: absent.repository,
            branch: "main",
            auto_deploy: true,
          },
          build: {},
        },
      }),
  },
  deleteProjectSource: {
    answer: "200",
    call: ({ slipway, app }) => slipway.DELETE("/v1/project/{id}/source", on(app)),
  },
  updateBuildSettings: {
    answer: "400 GIT_SOURCE_REQUIRED",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/build-settings", {
        ...on(app),
        body: { build_command: "npm run build" },
      }),
  },
  listSourceBranches: {
    answer: "400 GIT_SOURCE_REQUIRED",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/source/branches", on(app)),
  },
  deployProject: {
    answer: "400 GIT_SOURCE_REQUIRED",
    call: ({ slipway, app }) => slipway.POST("/v1/project/{id}/deploy", { ...on(app), body: {} }),
  },
  listBuilds: { answer: "200", call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/builds", on(app)) },
  readBuild: {
    answer: "404 BUILD_NOT_FOUND",
    call: (all) => all.slipway.GET("/v1/project/{id}/builds/{buildId}", build(all)),
  },
  readBuildLogs: {
    answer: "404 BUILD_NOT_FOUND",
    call: (all) => all.slipway.GET("/v1/project/{id}/builds/{buildId}/logs", build(all)),
  },
  deployGithubProject: {
    answer: "400 GIT_SOURCE_REQUIRED",
    call: ({ slipway, app }) => slipway.POST("/v1/project/{id}/github/deploy", { ...on(app), body: {} }),
  },
  listGithubBuilds: {
    answer: "200",
    call: ({ slipway, app }) => slipway.GET("/v1/project/{id}/github/builds", on(app)),
  },
  readGithubBuild: {
    answer: "404 BUILD_NOT_FOUND",
    call: (all) => all.slipway.GET("/v1/project/{id}/github/builds/{buildId}", build(all)),
  },
  readGithubBuildLogs: {
    answer: "404 BUILD_NOT_FOUND",
    call: (all) => all.slipway.GET("/v1/project/{id}/github/builds/{buildId}/logs", build(all)),
  },
  updateGithubCommands: {
    answer: "400 GIT_SOURCE_REQUIRED",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/github/commands", {
        ...on(app),
        body: { build_command: "npm run build" },
      }),
  },
  updateGithubDeploySettings: {
    answer: "400 GIT_SOURCE_REQUIRED",
    call: ({ slipway, app }) =>
      slipway.PATCH("/v1/project/{id}/github/deploy-settings", { ...on(app), body: { auto_deploy: false } }),
  },
} as const satisfies Partial<Record<OperationId, Operation>>;

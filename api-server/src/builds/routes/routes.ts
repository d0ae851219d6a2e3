import { listRoute, logRoute, readRoute } from "./reads.ts";

export const listBuilds = listRoute("listBuilds", "/v1/project/:id/builds");
export const readBuild = readRoute("readBuild", "/v1/project/:id/builds/:buildId");
export const readBuildLogs = logRoute("readBuildLogs", "/v1/project/:id/builds/:buildId/logs");

/** The same under the older paths, which have limits of their own. */
export const listGithubBuilds = listRoute("listGithubBuilds", "/v1/project/:id/github/builds");
export const readGithubBuild = readRoute("readGithubBuild", "/v1/project/:id/github/builds/:buildId");
export const readGithubBuildLogs = logRoute(
  "readGithubBuildLogs",
  "/v1/project/:id/github/builds/:buildId/logs",
);

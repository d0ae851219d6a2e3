import { githubConnections, type ProjectSpec } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { listConnections } from "../git/cluster.ts";
import { callServer } from "../git/connect.ts";
import type { OpenedSource, SourceServices } from "./opened-source.ts";

/** Sources of the legacy kind: they name their repository, and any account of the organization that sees it gives access. */

type Github = NonNullable<ProjectSpec["github"]>;

/**
 * The same, for changes of settings that only a connected repository has a use for.
 * @throws Failure 400 GITHUB_REPOSITORY_NOT_CONNECTED, 503
 */
export async function requireConnected(
  github: Github,
  organizationId: string,
  services: SourceServices,
): Promise<OpenedSource> {
  try {
    return await openGithub(github, organizationId, services);
  } catch (error) {
    const isOwn = error instanceof Failure && (error.status === 404 || error.status === 409);
    throw isOwn ? failures.githubRepositoryNotConnected(error.message) : error;
  }
}

export const repositoryPath = ({ repositoryOwner, repositoryName }: Github): string =>
  `${repositoryOwner}/${repositoryName}`;

/**
 * Opens the repository through the first account that sees it.
 * @throws Failure 409 GIT_CONNECTION_UNAVAILABLE without an account, or with one that cannot be used any more; 404
 *   GIT_REPOSITORY_NOT_FOUND; 503
 */
export async function openGithub(
  github: Github,
  organizationId: string,
  services: SourceServices,
): Promise<OpenedSource> {
  const accounts = githubConnections(
    await listConnections(services.kube, organizationId),
    github.repositoryOwner,
  );
  let refused: unknown = failures.gitConnectionUnavailable(
    "no GitHub account is connected with the organization",
  );
  for (const [index, connection] of accounts.entries()) {
    try {
      const path = repositoryPath(github);
      const { id } = await callServer(connection, services, (server) => server.resolve(path));
      return {
        connection,
        repositoryId: id,
        path,
        call: (request) => callServer(connection, services, (server) => request(server, id)),
      };
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      // The error of the likeliest connection is reported.
      if (index === 0) {
        refused = error;
      }
    }
  }
  throw refused;
}

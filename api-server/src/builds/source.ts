import type { Project, ProjectSpec } from "@slipway/crds";
import { GitError, openRepositoryId } from "@slipway/git";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { findConnection } from "../git/cluster.ts";
import { callServer } from "../git/connect.ts";
import { isRevoked } from "../git/view.ts";
import { openGithub } from "./github.ts";
import type { OpenedSource, SourceServices } from "./opened-source.ts";

type Source = NonNullable<ProjectSpec["source"]>;

/**
 * Opens a source.
 * @throws Failure 409 GIT_CONNECTION_UNAVAILABLE without a connection that can be used, GIT_SOURCE_CREATION_UNAVAILABLE for one of
 *   the legacy kind; 404 for a repository that the connection cannot read; 503
 */
export async function openSource(
  { connectionId, repositoryId: sealed }: Pick<Source, "connectionId" | "repositoryId">,
  organizationId: string,
  services: SourceServices,
): Promise<OpenedSource> {
  const connection = await findConnection(services.kube, organizationId, connectionId).catch(
    (error: unknown) => {
      if (error instanceof Failure && error.status === 404) {
        throw failures.gitConnectionUnavailable("the organization has no such connection");
      }
      throw error;
    },
  );
  if (isRevoked(connection)) {
    throw failures.gitConnectionUnavailable("the connection is revoked");
  }
  if (connection.spec.providerId === "github") {
    throw failures.gitSourceCreationUnavailable();
  }
  const repositoryId = opened(connectionId, sealed);
  return {
    connection,
    repositoryId,
    call: (request) => callServer(connection, services, (server) => request(server, repositoryId)),
  };
}

function opened(connectionId: string, sealed: string): string {
  try {
    return openRepositoryId(connectionId, sealed);
  } catch (error) {
    throw error instanceof GitError ? failures.gitRepositoryNotFound() : error;
  }
}

/**
 * The source that a project has, connected or legacy.
 * @throws Failure 400 GIT_SOURCE_REQUIRED for one that runs an image; as `openSource` and `openGithub`
 */
export async function openProjectSource(
  { spec }: Pick<Project, "spec">,
  organizationId: string,
  services: SourceServices,
): Promise<OpenedSource> {
  if (spec.source !== undefined) {
    return openSource(spec.source, organizationId, services);
  }
  if (spec.github !== undefined) {
    return openGithub(spec.github, organizationId, services);
  }
  throw failures.gitSourceRequired();
}

import {
  type GitConnection,
  githubConnections,
  type Project,
  type ProjectSpec,
  sourceRevision,
  toSnake,
} from "@slipway/crds";
import { GitError, type GitProvider, openRepositoryId } from "@slipway/git";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { findConnection, listConnections } from "../git/cluster.ts";
import { callServer } from "../git/connect.ts";
import type { RepositoryIds } from "../git/repository-ids.ts";
import { connectionView, isRevoked } from "../git/view.ts";
import type { Services } from "../services.ts";
import { versionDeployView } from "./settings.ts";

/** The source of a project: opened at its Git server, connected or legacy, and as clients see it. */

export type SourceServices = Pick<Services, "kube" | "git" | "now">;

/** A project's source at its Git server. */
export interface OpenedSource {
  connection: GitConnection;
  /** The server's own id. */
  repositoryId: string;
  /** `owner/name`, of the legacy kind. */
  path?: string;
  /** Calls the server. @throws Failure 404, 409, 503 */
  call<T>(request: (server: GitProvider, repositoryId: string) => Promise<T>): Promise<T>;
}

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

/** What is known of the source beside the project. */
export interface SourceContext {
  repositoryIds: RepositoryIds;
  connection?: GitConnection;
  /** `owner/name`; undefined when the server does not answer. */
  repositoryPath?: string;
}

/** Pure. */
export function sourceView(
  { metadata, spec }: Pick<Project, "metadata" | "spec">,
  { repositoryIds, connection, repositoryPath }: SourceContext,
) {
  const { source, build } = spec;
  const source_revision = sourceRevision({ metadata, spec });
  if (source === undefined) {
    return { source: null, build: null, source_revision, capabilities: null };
  }
  const { connectionId, branch, autoDeploy, versionDeploy } = source;
  const view = connection && connectionView(connection);
  return {
    source: {
      connection_id: connectionId,
      repository_id: repositoryIds.shown(source),
      branch,
      auto_deploy: autoDeploy,
      version_deploy: versionDeployView(versionDeploy),
      provider_id: view?.provider_id ?? null,
      repository_path: repositoryPath ?? null,
    },
    build: { ...NO_SETTINGS, ...toSnake(build ?? {}) },
    source_revision,
    capabilities: view?.capabilities ?? null,
  };
}

const NO_SETTINGS = {
  runtime: null,
  version: null,
  start_command: null,
  pre_build_command: null,
  build_command: null,
  dockerfile_path: null,
  context_path: ".",
};

/** What the connection and its server report about a source; what they do not answer now is left out. @throws Failure 503 */
export async function sourceContext(
  { spec }: Pick<Project, "spec">,
  organizationId: string,
  services: SourceServices & Pick<Services, "logger" | "repositoryIds">,
): Promise<SourceContext> {
  const context: SourceContext = { repositoryIds: services.repositoryIds };
  if (spec.source === undefined) {
    return context;
  }
  try {
    const opened = await openSource(spec.source, organizationId, services);
    context.connection = opened.connection;
    context.repositoryPath = (await opened.call((server, id) => server.repository(id))).path;
  } catch (error) {
    // The settings are shown although the connection is deleted or its server does not answer.
    if (!(error instanceof Failure)) {
      throw error;
    }
  }
  return context;
}

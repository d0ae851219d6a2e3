import { type GitConnection, type Project, sourceRevision, toSnake } from "@slipway/crds";
import { Failure } from "../errors/failure.ts";
import type { RepositoryIds } from "../git/repository-ids.ts";
import { connectionView } from "../git/view.ts";
import type { Services } from "../services.ts";
import { versionDeployView } from "./settings.ts";
import { openSource, type SourceServices } from "./source.ts";

/** A project's source as clients see it. */

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

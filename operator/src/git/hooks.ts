/** Which hooks at Git servers no project uses. Pure. */

import type { GitConnection, GitConnectionStatus, Project } from "@slipway/crds";
import { GitError, openRepositoryId, triggerMode } from "@slipway/git";

export type Hook = NonNullable<GitConnectionStatus["hooks"]>[number];

/** Whether the connection was deleted or revoked. */
export const isTerminating = ({ metadata, spec }: GitConnection): boolean =>
  metadata.deletionTimestamp !== undefined || spec.revokedAt !== undefined;

/** Whether a project's source uses the connection: a GitHub source uses any of its organization's. */
export function usesConnection({ spec }: Project, { metadata, spec: of }: GitConnection): boolean {
  if (spec.source) {
    return spec.source.connectionId === metadata.name;
  }
  return spec.github !== undefined && of.providerId === "github";
}

/** Hooks of repositories that publish no project. @param projects of the connection's namespace */
export function unwantedHooks(connection: GitConnection, projects: readonly Project[]): Hook[] {
  const hooks = connection.status?.hooks ?? [];
  if (isTerminating(connection)) {
    return hooks;
  }
  const followed = projects.filter((project) => usesConnection(project, connection) && isFollowed(project));
  return hooks.filter((hook) => !followed.some((project) => isOf(hook, project)));
}

function isFollowed({ metadata, spec }: Project): boolean {
  const source = spec.source ?? spec.github;
  return metadata.deletionTimestamp === undefined && source !== undefined && triggerMode(source) !== "manual";
}

function isOf({ repositoryId, path }: Hook, { spec: { source, github } }: Project): boolean {
  if (source) {
    return opened(source) === repositoryId;
  }
  const own = `${github?.repositoryOwner}/${github?.repositoryName}`;
  return path?.toLowerCase() === own.toLowerCase();
}

function opened({ connectionId, repositoryId }: NonNullable<Project["spec"]["source"]>): string | undefined {
  try {
    return openRepositoryId(connectionId, repositoryId);
  } catch (error) {
    if (error instanceof GitError) {
      return undefined;
    }
    throw error;
  }
}

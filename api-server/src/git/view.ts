import type { GitConnection } from "@slipway/crds";
import type { Capabilities, Repository } from "@slipway/git";
import type { RepositoryIds } from "./repository-ids.ts";

const NOTHING: Capabilities = {
  repositoryDiscovery: false,
  pushDeploy: false,
  nativePreviews: false,
  versionDeploy: false,
};

/** Whether the connection may still be used. */
export const isRevoked = ({ spec }: GitConnection): boolean => spec.revokedAt !== undefined;

/** The public projection: neither the credential nor where it is. */
export function connectionView(connection: GitConnection) {
  const { metadata, spec, status } = connection;
  return {
    id: metadata.name,
    provider_id: spec.providerId,
    instance_url: spec.instanceUrl,
    display_name: spec.displayName,
    status: isRevoked(connection) ? "revoked" : (status?.phase ?? "pending"),
    connection_revision: spec.revision,
    capabilities: { ...NOTHING, ...status?.capabilities },
    ...(metadata.creationTimestamp === undefined ? {} : { created_at: metadata.creationTimestamp }),
    ...(updatedAt(connection) === undefined ? {} : { updated_at: updatedAt(connection) }),
  };
}

/** When what clients see of it changed last. */
function updatedAt({ metadata, status, spec }: GitConnection): string | undefined {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return spec.revokedAt ?? ready?.lastTransitionTime ?? metadata.creationTimestamp;
}

/** A repository as clients see it. */
export function repositoryView(connectionId: string, repository: Repository, ids: RepositoryIds) {
  const { id, path, defaultBranch, webUrl } = repository;
  return {
    id: ids.seal(connectionId, id),
    path,
    default_branch: defaultBranch,
    private: repository.private,
    ...(webUrl === undefined ? {} : { web_url: webUrl }),
  };
}

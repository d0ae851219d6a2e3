import type { GitConnection } from "@slipway/crds";
import {
  type Capabilities,
  REPOSITORY_PATH,
  REPOSITORY_PATH_MAX_LENGTH,
  type Repository,
} from "@slipway/git";
import { z } from "zod";
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

/** Texts without control characters: they are shown in lists and sent in HTTP headers. */
const plain = (most: number, about: string) =>
  z
    .string()
    .min(1)
    .max(most)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
    .regex(/^[^\x00-\x1f\x7f]+$/, "must not hold control characters")
    .describe(about);

export const instanceUrl = z
  .string()
  .min(1)
  .max(512)
  .describe("HTTPS address of the server, certified by somebody trusted.");
export const displayName = plain(64, "Name for people.");
export const repositoryPath = z
  .string()
  .max(REPOSITORY_PATH_MAX_LENGTH)
  .regex(REPOSITORY_PATH, "must be owner/name")
  .describe("A repository, `owner/name`, that the credential is tried on.");
/** A colon would end it in the header that it is sent in. */
export const username = plain(255, "User of the server.").regex(/^[^:]+$/, "must not hold a colon");
export const token = plain(1_024, "Access token of the user. It is never returned.");

export const capabilities = z.object({
  repositoryDiscovery: z.boolean(),
  pushDeploy: z.boolean(),
  nativePreviews: z.boolean(),
  versionDeploy: z.boolean(),
});

export const connectionSchema = z.object({
  id: z.string(),
  provider_id: z.enum(["forgejo", "github"]),
  instance_url: z.string(),
  display_name: z.string(),
  status: z
    .enum(["pending", "active", "unavailable", "revoked"])
    .describe(
      "pending: it is being made. unavailable: the server refused the credential when it was last asked.",
    ),
  connection_revision: z.int().min(1).describe("Counts the changes of the connection."),
  capabilities,
  created_at: z.string().optional(),
  updated_at: z.string().optional(),
});

export const repositorySchema = z.object({
  id: z.string().describe("Opaque, and good for this connection only."),
  path: z.string(),
  default_branch: z.string(),
  private: z.boolean(),
  web_url: z.string().optional(),
});

/** Hooks at Git servers that no project uses: which they are, and how they are removed. */

import {
  isConflict,
  isForbidden,
  isNotFound,
  type KubeClient,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { fieldManagers, type GitConnection, type GitConnectionStatus, type Project } from "@slipway/crds";
import { GitError, type GitProvider, openRepositoryId, triggerMode } from "@slipway/git";
import { type SecretValues, secretTexts } from "../builds/desired/secrets.ts";
import type { OpenConnection } from "../builds/sources.ts";
import { RetryableError } from "../reconcile-errors.ts";
import { gitConnectionResource, projectResource } from "../resources.ts";

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

export interface HookRemoverOptions {
  client: KubeClient;
  connections: Store<GitConnection>;
  projects: Store<Project>;
  open: OpenConnection;
}

export interface RemainingHooks {
  hooks: readonly Hook[];
  /** Why they remain. */
  cause?: unknown;
  /** Without a credential they cannot be removed. */
  isUnremovable?: boolean;
}

export class HookRemover {
  readonly #options: HookRemoverOptions;

  constructor(options: HookRemoverOptions) {
    this.#options = options;
  }

  /**
   * Removes hooks that publish no project, or all hooks of a terminating connection.
   * @throws RetryableError when the connection was changed meanwhile; KubeError
   */
  async removeUnwanted(connection: GitConnection, signal: AbortSignal): Promise<RemainingHooks> {
    const { projects } = this.#options;
    const cached = unwantedHooks(connection, projects.list(connection.metadata.namespace));
    if (cached.length === 0) {
      return { hooks: [] };
    }
    // Checked against the live state before anything is removed: the cache may be behind.
    const unwanted = isTerminating(connection)
      ? cached
      : unwantedHooks(connection, await this.#live(connection, signal));
    return unwanted.length === 0 ? { hooks: [] } : this.#remove(connection, unwanted, signal);
  }

  #live({ metadata: { namespace } }: GitConnection, signal: AbortSignal): Promise<Project[]> {
    return this.#options.client.listAll<Project>(projectResource, { namespace, signal });
  }

  async #remove(
    connection: GitConnection,
    unwanted: readonly Hook[],
    signal: AbortSignal,
  ): Promise<RemainingHooks> {
    let provider: GitProvider;
    try {
      provider = await this.#options.open(connection, signal);
    } catch (error) {
      if (signal.aborted) {
        throw error;
      }
      const isUnremovable = error instanceof GitError || isForbidden(error) || isNotFound(error);
      return { hooks: unwanted, cause: error, isUnremovable };
    }
    const left: Hook[] = [];
    let cause: unknown;
    for (const hook of unwanted) {
      try {
        await provider.removeHooks(hook.repositoryId, hook.url);
      } catch (error) {
        if (signal.aborted) {
          throw error;
        }
        cause = error;
        left.push(hook);
      }
    }
    const removed = unwanted.filter((hook) => !left.includes(hook));
    if (removed.length > 0) {
      await this.#forget(connection, removed, provider, signal);
    }
    return { hooks: left, cause };
  }

  /** A hook that was requested again is recorded first, and may have been created before this removed it: then it is recreated. */
  async #forget(
    connection: GitConnection,
    removed: readonly Hook[],
    provider: GitProvider,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, connections } = this.#options;
    const { namespace, name, uid, resourceVersion } = connection.metadata;
    const hooks = (connection.status?.hooks ?? []).filter((hook) => !removed.includes(hook));
    const patch = { metadata: { uid, resourceVersion }, status: { hooks } };
    const written = { fieldManager: fieldManagers.gitConnection, subresource: "status", signal };
    const ref = { namespace, name };
    try {
      connections.observe(await client.patch<GitConnection>(gitConnectionResource, ref, patch, written));
    } catch (error) {
      if (isNotFound(error)) {
        return;
      }
      if (!isConflict(error)) {
        throw error;
      }
      const now = await client.getOrUndefined<GitConnection>(gitConnectionResource, ref, { signal });
      if (now && !isTerminating(now)) {
        await this.#recreateWanted(now, removed, provider, signal);
      }
      throw new RetryableError("Conflict", "the connection was changed meanwhile", { cause: error });
    }
  }

  async #recreateWanted(
    connection: GitConnection,
    removed: readonly Hook[],
    provider: GitProvider,
    signal: AbortSignal,
  ): Promise<void> {
    const { metadata, spec, status } = connection;
    const removedIds = new Set(removed.map(({ repositoryId }) => repositoryId));
    const unwanted = unwantedHooks(connection, await this.#live(connection, signal));
    const wanted = (status?.hooks ?? []).filter(
      (hook) => removedIds.has(hook.repositoryId) && !unwanted.includes(hook),
    );
    if (wanted.length === 0) {
      return;
    }
    const ref = { namespace: metadata.namespace, name: spec.credentialRef.name };
    const secret = await this.#options.client.getOrUndefined<SecretValues>(resources.secrets, ref, {
      signal,
    });
    const { hookSecret = "" } = secretTexts(secret);
    if (hookSecret === "") {
      return;
    }
    for (const { repositoryId, url } of wanted) {
      await provider.ensureHook(repositoryId, { url, secret: hookSecret });
    }
  }
}

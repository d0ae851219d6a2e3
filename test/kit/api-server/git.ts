import { type KubeClient, resources } from "@slipway/controller-runtime";
import { type GitConnection, organizationNamespace } from "@slipway/crds";
import { GitError, type GitProvider, type Release, type Repository, type Tag } from "@slipway/git";
import type { GitAccount, GitServers } from "../../../api-server/src/git/servers.ts";
import { gitConnectionResource } from "../../../api-server/src/resources.ts";

/** A Git server in this process: one user, some repositories. It replaces the network in tests of how the API handles answers. */
export interface FakeGit extends GitServers {
  /** Accounts that were opened. */
  opened: GitAccount[];
  /** The token that is accepted. */
  token: string;
  /** Set: every request fails with it. */
  failure: GitError | undefined;
  /** URLs of hooks by repository. */
  hooks: Map<string, string>;
  /** Commits by the refs that there are; every ref means one commit unless given. */
  refs: Map<string, string> | undefined;
  tags: Tag[];
  releases: Release[];
  hasGithubApp: boolean;
}

const repository: Repository = {
  id: "17",
  path: "acme/shop",
  defaultBranch: "main",
  private: true,
  webUrl: "https://git.example.com/acme/shop",
};
export const FAKE_SHA = "3f2c1e0d9b8a7f6e5d4c3b2a1f0e9d8c7b6a5f4e";

export function fakeGit(): FakeGit {
  const git: FakeGit = {
    opened: [],
    token: "right",
    failure: undefined,
    hooks: new Map(),
    refs: undefined,
    tags: [],
    releases: [],
    open: (account) => {
      git.opened.push(account);
      return provider(git, account);
    },
    hasGithubApp: false,
    githubAccount: async () => ({ login: "acme", instanceUrl: "https://github.com" }),
    close: async () => {},
  };
  return git;
}

function provider(git: FakeGit, { token }: GitAccount): GitProvider {
  const answer = async <T>(value: T): Promise<T> => {
    if (git.failure) {
      throw git.failure;
    }
    if (token !== git.token) {
      throw new GitError("CredentialRefused", "the Git server does not take the credential");
    }
    return value;
  };
  const found = async (isThere: boolean): Promise<Repository> => {
    await answer(undefined);
    if (!isThere) {
      throw new GitError("RepositoryNotFound", "the credential sees no such repository");
    }
    return repository;
  };
  return {
    check: () =>
      answer({ repositoryDiscovery: true, pushDeploy: true, nativePreviews: false, versionDeploy: true }),
    resolve: (path) => found(path === repository.path),
    repository: (id) => found(id === repository.id),
    repositories: () => answer({ items: [repository], nextCursor: undefined }),
    branches: () => answer([{ name: "main", commitSha: FAKE_SHA }]),
    tags: () => answer(git.tags),
    releases: () => answer(git.releases),
    commit: async (_id, ref) => {
      const sha = await answer(git.refs === undefined ? FAKE_SHA : git.refs.get(ref));
      if (sha === undefined) {
        throw new GitError("RefNotFound", "the repository has no such ref");
      }
      return { sha, title: "First" };
    },
    ensureHook: async (id, { url }) => {
      await answer(undefined);
      git.hooks.set(id, url);
      return { id: "1" };
    },
    removeHooks: async (id) => {
      await answer(undefined);
      git.hooks.delete(id);
    },
    clone: () =>
      answer({ url: "https://git.example.com/acme/shop.git", username: "slipway", password: token }),
  };
}

/** What deliveries to `putConnection`'s connections are signed with. */
export const HOOK_SECRET = "hook-secret";

/** Puts an active connection and its Secret into the cluster. */
export async function putConnection(
  kube: KubeClient,
  organizationId: string,
  id: string,
): Promise<GitConnection> {
  const namespace = organizationNamespace(organizationId);
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const name = `${id}-credential-000000000000`;
  await kube.create(resources.secrets, {
    metadata: { name, namespace },
    data: { username: base64("slipway"), token: base64("right"), hookSecret: base64(HOOK_SECRET) },
  } as never);
  const connection = await kube.create<GitConnection>(gitConnectionResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "GitConnection",
    metadata: { name: id, namespace },
    spec: {
      providerId: "forgejo",
      instanceUrl: "https://git.example.com",
      displayName: "Company Git",
      credentialRef: { name },
      repositoryPath: "acme/shop",
      revision: 1,
    },
  });
  return connection;
}

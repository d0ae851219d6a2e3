/** The interface of a Git provider, and the ids by which the platform refers to its repositories. */

import { createHash, timingSafeEqual } from "node:crypto";
import { GitError } from "./errors.ts";

/** What a connection can do. */
export interface Capabilities {
  repositoryDiscovery: boolean;
  pushDeploy: boolean;
  nativePreviews: boolean;
  versionDeploy: boolean;
}

export interface Repository {
  /** The provider's own id: it stays when the repository is renamed. */
  id: string;
  /** `owner/name`. */
  path: string;
  defaultBranch: string;
  private: boolean;
  webUrl?: string;
}

export interface Branch {
  name: string;
  commitSha: string;
}

export interface Tag {
  name: string;
  commitSha: string;
}

export interface Release {
  id: string;
  tag: string;
  draft: boolean;
  prerelease: boolean;
  /** ISO 8601; absent of drafts. */
  publishedAt?: string;
}

export interface Commit {
  sha: string;
  /** Its first line. */
  title: string;
}

export interface Hook {
  id: string;
}

/** One page of a list, and the cursor of the next one. */
export interface Page<Item> {
  items: Item[];
  /** Opaque; undefined at the end. */
  nextCursor: string | undefined;
}

/** How a commit is asked for. */
export interface CommitOptions {
  /** The repository may have been pushed to just now: one that seems empty is asked about again, for a few seconds. */
  isPushed?: boolean;
}

/** How the commit of a ref is fetched with Git itself. */
export interface CloneAccess {
  /** HTTPS, without a credential. */
  url: string;
  username: string;
  password: string;
}

export interface HookOptions {
  /** Where deliveries go. */
  url: string;
  /** What they are signed with. */
  secret: string;
}

/**
 * One account at one Git server. Every method throws `GitError`: CredentialRefused, PermissionLacking,
 * ProviderUnavailable, AddressRefused, CertificateUntrusted, and the codes of its own.
 */
export interface GitProvider {
  /** Checks the credential. Returns what a connection with it can do. */
  check(): Promise<Capabilities>;
  /** The repository at `owner/name`. @throws GitError RepositoryNotFound */
  resolve(path: string): Promise<Repository>;
  /** The repository with an id. @throws GitError RepositoryNotFound */
  repository(id: string): Promise<Repository>;
  /** A page of the repositories that the account sees. @throws GitError CapabilityUnavailable, CursorInvalid */
  repositories(cursor?: string): Promise<Page<Repository>>;
  /** Branches, at most 1,000. @throws GitError RepositoryNotFound, as all that follow */
  branches(repositoryId: string): Promise<Branch[]>;
  /** Tags as the server lists them, the newest first (the API of GitHub does not promise it), at most 1,000. */
  tags(repositoryId: string): Promise<Tag[]>;
  /** Releases, the newest first, at most 1,000; drafts where the account sees them. */
  releases(repositoryId: string): Promise<Release[]>;
  /** The commit that a branch, a tag or an abbreviated id resolves to now. @throws GitError RefNotFound */
  commit(repositoryId: string, ref: string, options?: CommitOptions): Promise<Commit>;
  /** Creates the hook with this URL, in place of an existing one. */
  ensureHook(repositoryId: string, wish: HookOptions): Promise<Hook>;
  /** Deletes the hooks with this URL; none is no failure. */
  removeHooks(repositoryId: string, url: string): Promise<void>;
  clone(repositoryId: string): Promise<CloneAccess>;
}

/** Longest path of a repository, in characters. */
export const REPOSITORY_PATH_MAX_LENGTH = 256;
const NAME = "[A-Za-z0-9_][A-Za-z0-9._-]*";

/** The form of `owner/name`. */
export const REPOSITORY_PATH = new RegExp(`^${NAME}/${NAME}$`);

/** Providers as `GET /v1/git/providers` lists them. */
export const providerIds = ["github", "forgejo", "gitlab"] as const;
export type ProviderId = (typeof providerIds)[number];

/** Ids of repositories: opaque, and valid for one connection only. */
export interface RepositoryIdForm {
  /** The id of the provider's repository within the connection. */
  seal(connectionId: string, id: string): string;
  /** The provider's own id. @throws GitError RepositoryNotFound when it was not sealed for this connection */
  open(connectionId: string, sealed: string): string;
}

/** Ids that end in the digest of their connection and repository: lower-case letters and digits. Pure. */
export function repositoryIdForm(digest: (text: string) => string): RepositoryIdForm {
  const seal = (connectionId: string, id: string): string =>
    `r${Buffer.from(id).toString("base64url")}-${digest(JSON.stringify([connectionId, id]))}`;
  return {
    seal,
    open(connectionId, sealed) {
      const encoded = /^r([A-Za-z0-9_-]{1,64})-[0-9a-z]+$/.exec(sealed)?.[1] ?? "";
      const id = Buffer.from(encoded, "base64url").toString();
      if (!/^[0-9]{1,19}$/.test(id) || !isEqual(seal(connectionId, id), sealed)) {
        throw new GitError("RepositoryNotFound", "the connection has no such repository");
      }
      return id;
    },
  };
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Ids in specs: without a key, so that every process of the platform opens them. */
export const { seal: sealRepositoryId, open: openRepositoryId } = repositoryIdForm((text) =>
  createHash("sha256").update(text).digest("hex").slice(0, 12),
);

import {
  type GitAccount,
  type GithubApp,
  type GitProvider,
  GitProviders,
  SsrfSafeFetch,
  type SsrfSafeFetchOptions,
} from "@slipway/git";

export type { GitAccount } from "@slipway/git";

/** The Git servers of tenants. */
export interface GitServers {
  /** A client of one account. @throws GitError CapabilityUnavailable for a provider that this platform does not support */
  open(account: GitAccount): GitProvider;
  /** Whether the platform has a GitHub App, so that accounts there can be connected. */
  readonly hasGithubApp: boolean;
  /** The account that the App is installed in, and where it is. @throws GitError */
  githubAccount(installationId: string): Promise<{ login: string; instanceUrl: string }>;
  close(): Promise<void>;
}

/** How long one request to a Git server may take, in milliseconds: a client waits for some of them. */
const TIMEOUT_MS = 6_000;

/** Git servers over the network. */
export function gitServers({
  githubApp,
  ...options
}: Pick<SsrfSafeFetchOptions, "allowedHosts" | "ca"> & {
  githubApp?: () => GithubApp | undefined;
}): GitServers {
  const fetch = new SsrfSafeFetch({ ...options, timeoutMs: TIMEOUT_MS });
  const providers = new GitProviders({ fetch, ...(githubApp ? { githubApp } : {}) });
  return {
    open: (account) => providers.open(account),
    get hasGithubApp() {
      return providers.hasGithubApp;
    },
    githubAccount: (installationId) => providers.githubAccount(installationId),
    close: () => fetch.close(),
  };
}

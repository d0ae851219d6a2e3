import {
  type GitAccount,
  GitError,
  type GithubApp,
  type GitProvider,
  GitProviders,
  SsrfSafeFetch,
  type SsrfSafeFetchOptions,
} from "@slipway/git";
import { failures } from "../errors/catalog.ts";
import type { Failure } from "../errors/failure.ts";

/** Clients of Git servers, and the failures that their errors become. */

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

/** What went wrong with a credential or an address that was just sent: 400 with the field that is to be changed. */
export function inputFailure(error: unknown): unknown {
  if (!(error instanceof GitError)) {
    return error;
  }
  const { message } = error;
  switch (error.code) {
    case "InstanceUrlInvalid":
      return field("instance_url", "GIT_INSTANCE_URL_INVALID", error);
    case "AddressRefused":
      return field("instance_url", "GIT_ADDRESS_REFUSED", error);
    case "CertificateUntrusted":
      return field("instance_url", "GIT_CERTIFICATE_UNTRUSTED", error);
    case "CredentialRefused":
      return field("token", "GIT_CREDENTIAL_REFUSED", error);
    case "PermissionLacking":
      return field("token", "GIT_PERMISSION_LACKING", error);
    case "RepositoryNotFound":
      return field("repository_path", "GIT_REPOSITORY_NOT_FOUND", error);
    default:
      return general(error, message);
  }
}

/** What went wrong with a connection that there is. */
export function connectionFailure(error: unknown): unknown {
  if (!(error instanceof GitError)) {
    return error;
  }
  switch (error.code) {
    case "RepositoryNotFound":
      return failures.gitRepositoryNotFound();
    case "RefNotFound":
      return failures.gitRefNotFound();
    case "CursorInvalid":
      return field("cursor", "GIT_CURSOR_INVALID", error);
    case "ProviderUnavailable":
    case "CapabilityUnavailable":
      return general(error, error.message);
    default:
      return failures.gitConnectionUnavailable(error.message);
  }
}

function general(error: GitError, message: string): Failure {
  return error.code === "CapabilityUnavailable"
    ? failures.gitCapabilityUnavailable(message)
    : failures.gitProviderUnavailable(message, error);
}

const field = (name: string, code: string, { message }: GitError): Failure =>
  failures.validation([{ field: name, message, code }]);

/** Where a build's commit is fetched from: resolved right before the fetch, as names and credentials change. */

import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import { type Failure, type FailureCode, failure } from "@slipway/builder/contract";
import { type KubeClient, resources } from "@slipway/controller-runtime";
import {
  type Build,
  type BuildSpec,
  type GitConnection,
  type GitProviderId,
  githubConnections,
} from "@slipway/crds";
import {
  GitError,
  type GithubApp,
  type GitProvider,
  GitProviders,
  isPublicAddress,
  openRepositoryId,
  SsrfSafeFetch,
} from "@slipway/git";
import { gitConnectionResource } from "../resources.ts";
import { type SecretValues, secretTexts } from "./desired/secrets.ts";
import type { SourceAddress } from "./desired/tasks.ts";

export interface OpenedSource {
  address: SourceAddress;
  credential?: { username: string; password: string };
  /** Authority of the Git server as PEM; public ones when empty. */
  ca: string;
}

/** The commit cannot be fetched. */
export class SourceUnavailableError extends Error {
  override name = "SourceUnavailableError";
  readonly failure: Failure;
  /** A retry may succeed. */
  readonly passing: boolean;

  constructor(
    code: FailureCode,
    { passing = false, ...options }: { passing?: boolean; said?: string; cause?: unknown } = {},
  ) {
    const reported = failure(code, { said: options.said });
    super(reported.message, { cause: options.cause });
    this.failure = reported;
    this.passing = passing;
  }
}

/** @throws SourceUnavailableError */
export type OpenSource = (build: Build, signal: AbortSignal) => Promise<OpenedSource>;

export interface SourceOptions {
  client: KubeClient;
  /** `host:port` whose address may be private. */
  allowedHosts: readonly string[];
  ca: string;
  /** The platform's GitHub App as it is now; without one nothing is built from GitHub. */
  githubApp?: () => GithubApp | undefined;
  /** All addresses of a host; the system's resolver unless given. */
  lookup?: (host: string) => Promise<{ address: string }[]>;
}

/** How long one request to a Git server may take, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** A Git server, opened with a connection's credential. */
export interface OpenedProvider {
  provider: GitProvider;
  /** The provider's own id of the source's repository. */
  repository: string;
  providerId: GitProviderId;
}

/** A source in either form. */
export type SourceSpec = Pick<BuildSpec, "source" | "github">;

/** @throws SourceUnavailableError when the connection was deleted or has no token; GitError */
export type OpenProvider = (
  namespace: string | undefined,
  spec: SourceSpec,
  signal: AbortSignal,
) => Promise<OpenedProvider>;

/** Opens the provider of a connection. @throws GitError when it has no credential, or the provider is not supported */
export type OpenConnection = (connection: GitConnection, signal: AbortSignal) => Promise<GitProvider>;

export function connectionOpener({ client, allowedHosts, ca, githubApp }: SourceOptions): OpenConnection {
  const fetch = new SsrfSafeFetch({ allowedHosts, ca: ca === "" ? undefined : ca, timeoutMs: TIMEOUT_MS });
  const providers = new GitProviders({ fetch, ...(githubApp ? { githubApp } : {}) });
  return async ({ metadata, spec }, signal) => {
    const { providerId, instanceUrl, installationId, credentialRef } = spec;
    if (providerId === "github") {
      return providers.open({ providerId, instanceUrl, installationId, username: "", token: "" });
    }
    const ref = { namespace: metadata.namespace, name: credentialRef.name };
    const secret = await client.getOrUndefined<SecretValues>(resources.secrets, ref, { signal });
    const { username = "", token = "" } = secretTexts(secret);
    if (token === "") {
      throw new GitError("CredentialRefused", "the connection's Secret has no token");
    }
    return providers.open({ providerId, instanceUrl, username, token });
  };
}

export function providerOpener(options: SourceOptions): OpenProvider {
  const { client } = options;
  const open = connectionOpener(options);
  return async (namespace, { source, github }, signal) => {
    if (source) {
      const ref = { namespace, name: source.connectionId };
      const connection = await client.getOrUndefined<GitConnection>(gitConnectionResource, ref, { signal });
      if (!connection || !isUsable(connection)) {
        throw new SourceUnavailableError("GIT_REPOSITORY_AUTH_FAILED");
      }
      const provider = await open(connection, signal);
      const { providerId } = connection.spec;
      return { provider, repository: openRepositoryId(source.connectionId, source.repositoryId), providerId };
    }
    if (!github) {
      throw new SourceUnavailableError("BUILD_FAILED_UNCLASSIFIED");
    }
    const all = await client.listAll<GitConnection>(gitConnectionResource, { namespace, signal });
    return openGithub(all, github, (connection) => open(connection, signal));
  };
}

/** The first of an organization's accounts that sees the repository. */
async function openGithub(
  all: readonly GitConnection[],
  { repositoryOwner, repositoryName }: NonNullable<SourceSpec["github"]>,
  open: (connection: GitConnection) => Promise<GitProvider>,
): Promise<OpenedProvider> {
  let refused: unknown = new SourceUnavailableError("GITHUB_ACCESS_TOKEN_MISSING");
  for (const [index, connection] of githubConnections(all, repositoryOwner).entries()) {
    try {
      const provider = await open(connection);
      const { id } = await provider.resolve(`${repositoryOwner}/${repositoryName}`);
      return { provider, repository: id, providerId: "github" };
    } catch (error) {
      if (!(error instanceof GitError)) {
        throw error;
      }
      // The error of the likeliest account counts.
      if (index === 0) {
        refused = error;
      }
    }
  }
  throw refused;
}

const isUsable = ({ metadata, spec }: GitConnection): boolean =>
  spec.revokedAt === undefined && metadata.deletionTimestamp === undefined;

export function sourceOpener(options: SourceOptions): OpenSource {
  const { allowedHosts, ca, lookup } = options;
  const open = providerOpener(options);
  const resolve = lookup ?? ((host: string) => systemLookup(host, { all: true }));
  return async ({ metadata, spec }, signal) => {
    try {
      const { provider, repository, providerId } = await open(metadata.namespace, spec, signal);
      const { url, ...credential } = await provider.clone(repository);
      const address = await publicAddress(new URL(url), allowedHosts, resolve);
      return { address: { url, provider: providerId, address }, credential, ca };
    } catch (error) {
      throw unavailable(error, spec.github !== undefined);
    }
  };
}

/** The address that the pod connects to: checked here, whatever the name resolves to later. */
async function publicAddress(
  { hostname, host, port }: URL,
  allowedHosts: readonly string[],
  resolve: (host: string) => Promise<{ address: string }[]>,
): Promise<string> {
  const name = hostname.replace(/^\[(.*)\]$/, "$1");
  const found = isIP(name) > 0 ? [{ address: name }] : await resolve(name);
  const isAllowed = allowedHosts.includes(port === "" ? `${host}:443` : host);
  const checked = found.find(({ address }) => isAllowed || isPublicAddress(address));
  if (!checked) {
    throw new GitError("AddressRefused", "the Git server's address is none that the platform connects to");
  }
  return checked.address;
}

/** @param isGithub whether to use the codes of GitHub sources */
function unavailable(error: unknown, isGithub: boolean): unknown {
  if (!(error instanceof GitError)) {
    const code = (error as NodeJS.ErrnoException).code;
    // Names that do not resolve.
    return typeof code === "string" && /^E(AI_|NOTFOUND|NODATA|TIMEOUT|REFUSED)/.test(code)
      ? new SourceUnavailableError("GIT_SERVER_UNAVAILABLE", { passing: true, cause: error })
      : error;
  }
  switch (error.code) {
    case "ProviderUnavailable":
      return new SourceUnavailableError("GIT_SERVER_UNAVAILABLE", {
        passing: true,
        said: error.message,
        cause: error,
      });
    case "CertificateUntrusted":
      return new SourceUnavailableError("GIT_CERTIFICATE_INVALID", { cause: error });
    case "AddressRefused":
    case "InstanceUrlInvalid":
      return new SourceUnavailableError("GIT_SERVER_UNAVAILABLE", { said: error.message, cause: error });
    case "CapabilityUnavailable":
      return new SourceUnavailableError(
        isGithub ? "GITHUB_ACCESS_TOKEN_MISSING" : "GIT_REPOSITORY_AUTH_FAILED",
        {
          cause: error,
        },
      );
    case "CredentialRefused":
    case "PermissionLacking":
      // The App was uninstalled, suspended or restricted: only the account's owner can restore its access.
      return new SourceUnavailableError(
        isGithub ? "GITHUB_REPOSITORY_REAUTHORIZATION_REQUIRED" : "GIT_REPOSITORY_AUTH_FAILED",
        { cause: error },
      );
    default:
      return new SourceUnavailableError(
        isGithub ? "GITHUB_REPOSITORY_AUTH_FAILED" : "GIT_REPOSITORY_AUTH_FAILED",
        {
          cause: error,
        },
      );
  }
}

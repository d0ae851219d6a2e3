import type { GitConnection } from "@slipway/crds";
import {
  type Capabilities,
  canonicalInstanceUrl,
  type GitAccount,
  GitError,
  type GitProvider,
} from "@slipway/git";
import { failures } from "../errors/catalog.ts";
import type { Services } from "../services.ts";
import { patchConnection, patchConnectionStatus } from "./cluster.ts";
import {
  acceptedStatus,
  assertConnectionLimit,
  connectionsOf,
  createConnectionWithSecret,
  refusedStatus,
} from "./create-connection.ts";
import {
  createCredential,
  credentialName,
  deleteCredential,
  type GitCredential,
  readCredential,
} from "./credentials.ts";
import { connectionFailure, inputFailure } from "./servers.ts";
import { isRevoked } from "./view.ts";

/** Connects organizations with Git servers: verifies a credential, stores it, replaces it. */

type With = Pick<Services, "kube" | "git" | "now">;

/** The request of a client to connect a server. */
export interface ConnectRequest {
  instanceUrl: string;
  displayName: string;
  repositoryPath: string;
  username: string;
  token: string;
}

/** Checks that the server accepts a credential, and that it can read the repository. @throws Failure 400, 503 */
async function tried(provider: GitProvider, repositoryPath: string): Promise<Capabilities> {
  try {
    const capabilities = await provider.check();
    await provider.resolve(repositoryPath);
    return capabilities;
  } catch (error) {
    throw inputFailure(error);
  }
}

/**
 * Connects an organization with a server, after the credential was checked there.
 * @throws Failure 400 that names the field, 409 with too many, 503
 */
export async function connect(
  request: ConnectRequest,
  organizationId: string,
  { kube, git, now, catalog }: With & Pick<Services, "catalog">,
): Promise<GitConnection> {
  const { displayName, repositoryPath, username, token } = request;
  const instanceUrl = canonical(request.instanceUrl);
  assertConnectionLimit(await connectionsOf(kube, organizationId), { catalog });
  const account = { providerId: "forgejo", instanceUrl, username, token };
  const capabilities = await tried(git.open(account), repositoryPath);
  const spec = { providerId: "forgejo", instanceUrl, displayName, repositoryPath } as const;
  return createConnectionWithSecret(organizationId, { username, token }, spec, capabilities, { kube, now });
}

/** @throws Failure 400 */
function canonical(instanceUrl: string): string {
  try {
    return canonicalInstanceUrl(instanceUrl);
  } catch (error) {
    throw inputFailure(error);
  }
}

/** The parts of a connection's credential to replace. */
export type CredentialChange = Partial<Pick<ConnectRequest, "repositoryPath" | "username" | "token">>;

/**
 * Replaces parts of a credential, after the result was checked. The secret of the hooks stays the same.
 * @throws Failure 400 that names the field, 409 when it is revoked or changed meanwhile, 503
 */
export async function replaceCredential(
  connection: GitConnection,
  change: CredentialChange,
  { kube, git, now }: With,
): Promise<GitConnection> {
  if (isRevoked(connection)) {
    throw failures.gitConnectionUnavailable("the connection is revoked");
  }
  const { providerId, instanceUrl, credentialRef, revision } = connection.spec;
  if (providerId === "github") {
    throw failures.gitCapabilityUnavailable(
      "a GitHub account has no credential to replace: install the App again",
    );
  }
  const old = await readCredential(kube, connection);
  const repositoryPath = change.repositoryPath ?? connection.spec.repositoryPath;
  const credential = { ...old, username: change.username ?? old.username, token: change.token ?? old.token };
  const { username, token } = credential;
  const capabilities = await tried(
    openAccount(git, { providerId, instanceUrl, username, token }),
    repositoryPath as string,
  );

  const name = credentialName(connection.metadata.name, credential);
  if (name !== credentialRef.name) {
    await createCredential(kube, connection, name, credential);
  }
  let changed: GitConnection;
  try {
    changed = await patchConnection(kube, connection, {
      credentialRef: { name },
      repositoryPath,
      revision: revision + 1,
    });
  } catch (error) {
    if (name !== credentialRef.name) {
      await deleteCredential(kube, connection, name).catch(() => {});
    }
    throw error;
  }
  if (name !== credentialRef.name) {
    await deleteCredential(kube, connection, credentialRef.name);
  }
  return patchConnectionStatus(kube, changed, acceptedStatus(changed, capabilities, now()));
}

/** A client of a connection's server. @throws Failure 409 when it is revoked or its credential is deleted, 503 */
export async function openConnection(
  connection: GitConnection,
  { kube, git }: Pick<Services, "kube" | "git">,
): Promise<GitProvider> {
  if (isRevoked(connection)) {
    throw failures.gitConnectionUnavailable("the connection is revoked");
  }
  return openAccount(git, accountOf(connection, await readCredential(kube, connection)));
}

/** The account that a connection has at its server. Pure. */
export function accountOf({ spec }: GitConnection, { username, token }: GitCredential): GitAccount {
  const { providerId, instanceUrl, installationId } = spec;
  return { providerId, instanceUrl, username, token, ...(installationId ? { installationId } : {}) };
}

function openAccount(git: Services["git"], account: GitAccount): GitProvider {
  try {
    return git.open(account);
  } catch (error) {
    throw connectionFailure(error);
  }
}

/** Calls a connection's server. @throws Failure 404, 409, 503 */
export async function callServer<T>(
  connection: GitConnection,
  services: With,
  call: (provider: GitProvider) => Promise<T>,
): Promise<T> {
  const provider = await openConnection(connection, services);
  try {
    return await call(provider);
  } catch (error) {
    const isRefused = error instanceof GitError && error.code === "CredentialRefused";
    if (isRefused && connection.status?.phase === "active") {
      // For readers of the connection; the caller gets the error itself.
      const status = refusedStatus(connection, services.now());
      await patchConnectionStatus(services.kube, connection, status).catch(() => {});
    }
    throw connectionFailure(error);
  }
}

/**
 * Connects an organization with an account of GitHub in which the platform's App is installed. The caller has made sure
 * that the account is the organization's: the installation itself does not report it. Connected again, an account gets its new installation.
 * @throws GitError when the App is not installed there; Failure 409 with too many, 503
 */
export async function connectGithub(
  installationId: string,
  organizationId: string,
  { kube, git, now, catalog }: Pick<Services, "kube" | "git" | "now" | "catalog">,
): Promise<GitConnection> {
  const { login: account, instanceUrl } = await git.githubAccount(installationId);
  const provider = git.open({ providerId: "github", instanceUrl, username: "", token: "", installationId });
  const capabilities = await provider.check();
  const existing = await connectionsOf(kube, organizationId);
  const known = existing.find((one) => one.spec.account === account && !isRevoked(one));
  if (known) {
    const revision = known.spec.revision + 1;
    const changed =
      known.spec.installationId === installationId
        ? known
        : await patchConnection(kube, known, { installationId, revision });
    return patchConnectionStatus(kube, changed, acceptedStatus(changed, capabilities, now()));
  }
  assertConnectionLimit(existing, { catalog });
  const displayName = account.slice(0, 64);
  const spec = { providerId: "github", instanceUrl, displayName, installationId, account } as const;
  return createConnectionWithSecret(organizationId, {}, spec, capabilities, { kube, now });
}

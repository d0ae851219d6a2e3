import { randomBytes } from "node:crypto";
import { type GitConnection, labels, MANAGED_BY, organizationNamespace } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { newGitConnectionId } from "../ids.ts";
import { isGuarded, readNamespace } from "../organizations/namespace.ts";
import type { Services } from "../services.ts";
import {
  createConnection,
  createCredential,
  deleteConnection,
  listConnections,
  patchConnection,
  patchConnectionStatus,
} from "./cluster.ts";
import { credentialName, MOST_CONNECTIONS } from "./connect.ts";
import { takenStatus } from "./state.ts";
import { isRevoked } from "./view.ts";

/**
 * Connects an organization with an account of GitHub in which the platform's App is installed. Whoever may say so has made sure
 * that the account is the organization's: the installation itself does not tell. Connected again, an account gets its new installation.
 * @throws GitError when the App is not installed there; Failure 409 with too many, 503
 */
export async function connectGithub(
  installationId: string,
  organizationId: string,
  { kube, git, now }: Pick<Services, "kube" | "git" | "now">,
): Promise<GitConnection> {
  const { login: account, instanceUrl } = await git.githubAccount(installationId);
  const provider = git.open({ providerId: "github", instanceUrl, username: "", token: "", installationId });
  const capabilities = await provider.check();
  if (!isGuarded(await readNamespace(kube, organizationId))) throw failures.organizationRuntimeUnavailable();
  const existing = await listConnections(kube, organizationId);
  const known = existing.find((one) => one.spec.account === account && !isRevoked(one));
  if (known) {
    const revision = known.spec.revision + 1;
    const changed =
      known.spec.installationId === installationId
        ? known
        : await patchConnection(kube, known, { installationId, revision });
    return patchConnectionStatus(kube, changed, takenStatus(changed, capabilities, now()));
  }
  if (existing.length >= MOST_CONNECTIONS) throw failures.gitConnectionLimitReached(MOST_CONNECTIONS);
  const id = newGitConnectionId();
  const credential = { hookSecret: randomBytes(32).toString("hex") };
  const credentialRef = { name: credentialName(id, credential) };
  const connection = await createConnection(kube, {
    metadata: {
      name: id,
      namespace: organizationNamespace(organizationId),
      labels: { [labels.managedBy]: MANAGED_BY, [labels.organization]: organizationId },
    },
    spec: {
      providerId: "github",
      instanceUrl,
      displayName: account.slice(0, 64),
      credentialRef,
      installationId,
      account,
      revision: 1,
    },
  });
  try {
    await createCredential(kube, connection, credentialRef.name, credential);
    return await patchConnectionStatus(kube, connection, takenStatus(connection, capabilities, now()));
  } catch (error) {
    // Its Secret, if it was made, goes with it.
    await deleteConnection(kube, connection).catch(() => {});
    throw error;
  }
}

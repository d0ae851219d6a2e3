import type { GitConnection } from "@slipway/crds";
import type { Services } from "../services.ts";
import { patchConnection, patchConnectionStatus } from "./cluster.ts";
import { assertRoom, connectionsOf, makeConnection } from "./create-connection.ts";
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
    return patchConnectionStatus(kube, changed, takenStatus(changed, capabilities, now()));
  }
  assertRoom(existing, { catalog });
  const displayName = account.slice(0, 64);
  const spec = { providerId: "github", instanceUrl, displayName, installationId, account } as const;
  return makeConnection(organizationId, {}, spec, capabilities, { kube, now });
}

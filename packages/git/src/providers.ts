/** Git servers by the accounts that are used there. */

import { GitError } from "./errors.ts";
import { ForgejoClient } from "./forgejo/client.ts";
import { GithubClient } from "./github/client.ts";
import { type GithubApp, InstallationTokens } from "./github/tokens.ts";
import type { SsrfSafeFetch } from "./net/fetch.ts";
import type { GitProvider } from "./provider.ts";

/** How a Git server is spoken to, and as whom. */
export interface GitAccount {
  providerId: string;
  /** Canonical. */
  instanceUrl: string;
  /** Not of GitHub. */
  username: string;
  /** Not of GitHub. */
  token: string;
  /** Of GitHub: where its App is installed. */
  installationId?: string | undefined;
}

export interface GitProvidersOptions {
  fetch: SsrfSafeFetch;
  /** The platform's GitHub App as it is now; undefined where there is none. */
  githubApp?: () => GithubApp | undefined;
  now?: () => Date;
}

/** Opens accounts. Tokens of installations are kept for as long as they are good. */
export class GitProviders {
  readonly #options: GitProvidersOptions;
  /** By installation, with the App that they are of. */
  readonly #tokens = new Map<string, { app: GithubApp; tokens: InstallationTokens }>();

  constructor(options: GitProvidersOptions) {
    this.#options = options;
  }

  /** @throws GitError CapabilityUnavailable for a provider that this platform does not speak to */
  open(account: GitAccount): GitProvider {
    const { fetch } = this.#options;
    const { providerId, instanceUrl, username, token, installationId } = account;
    if (providerId === "forgejo") {
      return new ForgejoClient({ fetch, instanceUrl, username, token });
    }
    if (providerId === "github" && installationId !== undefined) {
      return this.openInstallation(installationId);
    }
    throw new GitError("CapabilityUnavailable", `this platform does not speak to ${providerId}`);
  }

  /** Whether the platform has a GitHub App. */
  get hasGithubApp(): boolean {
    return this.#options.githubApp?.() !== undefined;
  }

  /** The account that the App is installed in, and where it is. @throws GitError */
  async githubAccount(installationId: string): Promise<{ login: string; instanceUrl: string }> {
    const { login } = await this.openInstallation(installationId).account();
    return { login, instanceUrl: this.#options.githubApp?.()?.cloneUrl ?? "" };
  }

  /** @throws GitError CapabilityUnavailable where the platform has no App */
  openInstallation(installationId: string): GithubClient {
    const { fetch, githubApp, now } = this.#options;
    const app = githubApp?.();
    if (app === undefined) {
      throw new GitError("CapabilityUnavailable", "this platform has no GitHub App");
    }
    const kept = this.#tokens.get(installationId);
    const isSame = kept !== undefined && JSON.stringify(kept.app) === JSON.stringify(app);
    const tokens = isSame ? kept.tokens : new InstallationTokens(fetch, app, installationId, now);
    this.#tokens.set(installationId, { app, tokens });
    return new GithubClient({ fetch, app, installationId, tokens, ...(now ? { now } : {}) });
  }
}

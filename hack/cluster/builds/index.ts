import { pkiDir } from "../../lib/paths.ts";
import { say } from "../../lib/steps.ts";
import { addresses, buildsRegistryHost, ports } from "../addresses.ts";
import { ensureBinaries, ensureBinary, missingBinaries } from "../binaries.ts";
import { paths } from "../components.ts";
import { ensurePackages } from "../packages.ts";
import type { Pki } from "../pki.ts";
import { type Daemon, ensureDaemon } from "../processes.ts";
import type { BinaryName } from "../programs.ts";
import { ensureGitAccount, ensureSampleRepository, type GitAccount } from "./git-account.ts";
import { type GitServer, gitUrl, prepareGitServer } from "./git-server.ts";
import { ensureRegistryKey, prepareRegistry } from "./registry.ts";

/** Go programs that only builds need: the Git server, and what the builder's image has. */
export const buildsBinaries: BinaryName[] = ["crane", "rootlesskit", "buildkitd", "buildctl", "gitea"];

/** Debian packages that only they need; Gitea's database is written in C. */
export const buildsPackages = ["git", "gcc", "libc6-dev"];

/** Registry that builds push to with tokens, and that the nodes pull from. */
export interface BuildsRegistryAccess {
  host: string;
  caFile: string;
  /** PEM private key by which its tokens are signed. */
  keyFile: string;
}

/** What a cluster has for builds. */
export interface Builds {
  registry: BuildsRegistryAccess;
  git: GitAccount & { url: string; caFile: string };
}

/** Where the registry of the embedded cluster's builds is or will be, and the key of its tokens, made once. */
export async function buildsRegistry(pki: Pki): Promise<BuildsRegistryAccess> {
  return {
    host: buildsRegistryHost,
    caFile: pki.authority.cert,
    keyFile: await ensureRegistryKey(pkiDir),
  };
}

/**
 * Ensures that the embedded cluster has what builds need: a registry that accepts the platform's tokens, a Git server with
 * a user and a sample repository. Both keep their data.
 * @param apiPort of the API server on loopback, where clients of the registry get tokens
 */
export async function ensureBuilds(pki: Pki, apiPort: number, log: string): Promise<Builds> {
  const added = await ensurePackages(buildsPackages, log);
  if (added.length > 0) {
    say(`installed ${added.join(" ")}`);
  }
  await ensureBinaries(missingBinaries(buildsBinaries));
  const registry = await buildsRegistry(pki);
  await start(
    await prepareRegistry(
      {
        data: paths.buildsRegistry,
        config: paths.buildsRegistryConfig,
        keys: pkiDir,
        host: registry.host,
        tls: pki.registry,
        realm: `http://127.0.0.1:${apiPort}/registry/token`,
      },
      await ensureBinary("registry"),
    ),
  );
  const server: GitServer = {
    folder: paths.git,
    address: addresses.node,
    port: ports.git,
    tls: pki.git,
    authority: pki.authority.cert,
  };
  const binary = await ensureBinary("gitea");
  await start(await prepareGitServer(server, binary));
  const account = await ensureGitAccount(server, binary);
  await ensureSampleRepository(server, account);
  return { registry, git: { ...account, url: gitUrl(server), caFile: server.authority } };
}

async function start(daemon: Daemon): Promise<void> {
  const did = await ensureDaemon(daemon);
  say(`${daemon.name} ${did === "kept" ? "runs" : did}`);
}

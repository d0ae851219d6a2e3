import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureBinary } from "../../../hack/cluster/binaries.ts";
import {
  ensureGitAccount,
  ensureSampleRepository,
  type GitAccount,
} from "../../../hack/cluster/builds/git-account.ts";
import { callGit, type GitAnswer } from "../../../hack/cluster/builds/git-api.ts";
import { type GitServer, gitea, gitUrl, prepareGitServer } from "../../../hack/cluster/builds/git-server.ts";
import { ensureAuthority, ensureCertificate } from "../../../hack/cluster/certificates.ts";
import { ensureDaemon, stopDaemon } from "../../../hack/cluster/processes.ts";
import { freePorts } from "../../../hack/lib/ports.ts";

/** A real Git server of a test's own, on loopback, with one private repository `slipway/sample-node`. */
export interface TestGitea extends GitAccount {
  url: string;
  /** `host:port`, as configuration allows it. */
  host: string;
  /** PEM of the authority that certifies it. */
  ca: string;
  /** Calls its API as its user, or with another token. */
  call: (
    method: Parameters<typeof callGit>[2],
    path: string,
    body?: object,
    token?: string,
  ) => Promise<GitAnswer>;
  /** Another token of its user, with these scopes alone. */
  limitedToken: (...scopes: string[]) => Promise<string>;
  stop: () => Promise<void>;
}

/** Starts Gitea; the first time on a machine that builds it. */
export async function startGitea(): Promise<TestGitea> {
  const folder = await mkdtemp(join(tmpdir(), "slipway-gitea-"));
  const binary = await ensureBinary("gitea");
  const authority = await ensureAuthority(folder, "ca");
  const names = { commonName: "git", altNames: ["IP:127.0.0.1"] };
  const tls = await ensureCertificate(folder, "git", authority, names);
  const [port = 0] = await freePorts(1);
  const address = "127.0.0.1";
  const server: GitServer = { folder: join(folder, "git"), address, port, tls, authority: authority.cert };
  const dirs = { run: join(folder, "run"), logs: folder };
  const stop = async () => {
    await stopDaemon("git", 15_000, dirs);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await ensureDaemon(await prepareGitServer(server, binary), dirs);
    const account = await ensureGitAccount(server, binary);
    await ensureSampleRepository(server, account);
    return {
      ...account,
      url: gitUrl(server),
      host: `${address}:${port}`,
      ca: await readFile(authority.cert, "utf8"),
      call: (method, path, body, token = account.token) => callGit(server, token, method, path, body),
      limitedToken: (...scopes) => {
        const name = randomBytes(6).toString("hex");
        const command = ["admin", "user", "generate-access-token", "--raw", "--token-name", name];
        return gitea(server, binary, [
          ...command,
          "--username",
          account.username,
          "--scopes",
          scopes.join(","),
        ]);
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

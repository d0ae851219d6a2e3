import { createHmac, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { run } from "../../lib/exec.ts";
import { writeFileAtomic } from "../../lib/files.ts";
import type { KeyPair } from "../certificates.ts";
import type { Daemon } from "../processes.ts";
import { type GitSecrets, gitConfig, room } from "./git-config.ts";

/** A Git server: where it keeps what, and how it is reached. */
export interface GitServer {
  /** Folder with everything that is its own. */
  folder: string;
  address: string;
  port: number;
  tls: KeyPair;
  /** Certificate of the authority that signs it. */
  authority: string;
}

/** Base address of a Git server. */
export const gitUrl = (server: GitServer): string => `https://${server.address}:${server.port}`;

/** User and group that it runs as. No account of the machine has this number: nobody else's files are within its reach. */
const user = 65530;

const isRoot = process.getuid?.() === 0;

/**
 * How a process becomes that user. Without root, in tests, it has the number in a user namespace alone, and outside is who started it.
 */
const asUser = isRoot
  ? `setpriv --reuid=${user} --regid=${user} --clear-groups --no-new-privs --`
  : `unshare --user --map-user=${user} --map-group=${user} -- setpriv --no-new-privs --`;

/**
 * The way into the server's room, a mount namespace of its own: the checkout and the cache of binaries may lie in folders
 * that only root may enter, and it is not root. The paths in it never change, whatever the binary's folder is called.
 */
const enter = `
set -e
mount -t tmpfs -o mode=0755 slipway-git /mnt
mkdir ${room.app} ${room.conf} ${room.data}
mount --bind -o ro "$1" ${room.app}
mount --bind -o ro "$2" ${room.conf}
mount --bind "$3" ${room.data}
shift 3
exec ${asUser} \\
  env -i PATH=/usr/bin:/bin LANG=C.UTF-8 USER=git HOME=${room.data}/home GITEA_WORK_DIR=${room.data} "$@"
`;

/** The command line that runs Gitea in its room; the process is the one that was started, without a parent beside it. */
function inNamespace(server: GitServer, binary: string, args: string[]): string[] {
  const folders = [dirname(binary), join(server.folder, "conf"), join(server.folder, "data")];
  const program = [`${room.app}/gitea`, "--config", `${room.conf}/app.ini`, ...args];
  const own = isRoot ? ["--mount"] : ["--map-root-user", "--mount"];
  return ["/usr/bin/unshare", ...own, "/bin/sh", "-c", enter, "git", ...folders, ...program];
}

/** Runs one of Gitea's own commands, such as `admin user create`, beside the server. What it prints is not logged. */
export async function gitea(server: GitServer, binary: string, args: string[]): Promise<string> {
  const [command = "", ...rest] = inNamespace(server, binary, args);
  return (await run(command, rest, { cwd: "/", timeoutMs: 60_000 })).trim();
}

/** Makes the server's folders, secrets and configuration, and returns how it is run. Its data survives all of it. */
export async function prepareGitServer(server: GitServer, binary: string): Promise<Daemon> {
  const [conf, data] = [join(server.folder, "conf"), join(server.folder, "data")];
  await mkdir(server.folder, { recursive: true, mode: 0o755 });
  for (const [folder, owner] of [
    [conf, 0],
    [data, user],
    [join(data, "home"), user],
  ] as const) {
    await mkdir(folder, { recursive: true, mode: 0o750 });
    await giveTo(folder, owner);
  }
  const files = {
    "app.ini": gitConfig(server.address, server.port, await ensureSecrets(server)),
    "tls.crt": await readFile(server.tls.cert, "utf8"),
    "tls.key": await readFile(server.tls.key, "utf8"),
  };
  const reads: string[] = [];
  for (const [name, text] of Object.entries(files)) {
    const path = join(conf, name);
    await writeFileAtomic(path, text, 0o600);
    await giveTo(path, 0);
    await chmod(path, 0o640);
    reads.push(path);
  }
  const health = ["-sf", "--cacert", server.authority, "--max-time", "2", "-o", "/dev/null"];
  return {
    name: "git",
    argv: inNamespace(server, binary, ["web"]),
    reads,
    healthy: () =>
      run("curl", [...health, `${gitUrl(server)}/api/healthz`], { env: { CURL_CA_BUNDLE: undefined } }).then(
        () => true,
        () => false,
      ),
    // Its first start makes the database's tables.
    timeoutMs: 120_000,
  };
}

/** Makes a path an account's and the server's group's. Without root both are who started it. */
async function giveTo(path: string, owner: number): Promise<void> {
  if (isRoot) {
    await chown(path, owner, user);
  }
}

async function ensureSecrets(server: GitServer): Promise<GitSecrets> {
  const file = join(server.folder, "secrets.json");
  if (!existsSync(file)) {
    const random = (): string => randomBytes(32).toString("base64url");
    const made: GitSecrets = {
      secretKey: random(),
      internalToken: internalToken(),
      lfsSecret: random(),
      oauthSecret: random(),
    };
    await writeFileAtomic(file, JSON.stringify(made));
  }
  return JSON.parse(await readFile(file, "utf8")) as GitSecrets;
}

/** A JWT by a key that nobody keeps, as `gitea generate secret INTERNAL_TOKEN` makes it: only ever compared. */
function internalToken(): string {
  const parts = [{ alg: "HS256", typ: "JWT" }, { nbf: Math.floor(Date.now() / 1000) }];
  const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  return `${text}.${createHmac("sha256", randomBytes(32)).update(text).digest("base64url")}`;
}

/** git, configured to trust nothing: no configuration but ours, no hooks, no prompts, no protocol but the one of the address. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { type ExitResult, type Options, run } from "../exec.ts";
import type { FetchTask } from "../task.ts";

export interface GitOptions {
  url: string;
  /** Files with the credential; undefined for a public repository. */
  credential?: { usernameFile: string; passwordFile: string };
  address?: string;
  caFile?: string;
  /** Where git may keep what it needs until the step ends. */
  scratch: string;
  maxBytes: number;
  onOutput(chunk: Buffer): void;
  signal?: AbortSignal;
}

/** In git's own folder: whom it trusts. */
const AUTHORITIES = "authorities.pem";

/** The public authorities, and those of a file: the same installation has servers of both kinds. */
export const authorities = async (caFile: string): Promise<string[]> => [
  ...rootCertificates,
  await readFile(caFile, "utf8"),
];

/** A repository without a work tree, which takes one commit. */
export class Git {
  readonly #options: GitOptions;
  readonly #home: string;
  readonly #config: string[];
  readonly #gitDir: string;

  private constructor(options: GitOptions, home: string, helper: string | undefined) {
    this.#options = options;
    this.#home = home;
    this.#gitDir = join(home, "repository");
    const { origin, protocol } = new URL(options.url);
    const { address, caFile } = options;
    this.#config = [
      "protocol.allow=never",
      `protocol.${protocol.slice(0, -1)}.allow=always`,
      // A redirection could lead anywhere, and the credential with it.
      "http.followRedirects=false",
      "core.hooksPath=/dev/null",
      "core.fsmonitor=false",
      "core.protectHFS=true",
      "core.protectNTFS=true",
      "core.autocrlf=false",
      "core.attributesFile=/dev/null",
      "gc.auto=0",
      "maintenance.auto=false",
      "advice.detachedHead=false",
      "credential.helper=",
      ...(helper === undefined
        ? []
        : [`credential.${origin}.helper=${helper}`, `credential.${origin}.useHttpPath=false`]),
      ...(caFile === undefined ? [] : [`http.sslCAInfo=${join(home, AUTHORITIES)}`]),
      ...(address === undefined ? [] : [`http.curloptResolve=${resolution(options.url, address)}`]),
    ];
  }

  static async open(options: GitOptions): Promise<Git> {
    await mkdir(options.scratch, { recursive: true });
    const home = await mkdtemp(join(options.scratch, "git-"));
    if (options.caFile !== undefined) {
      await writeFile(join(home, AUTHORITIES), (await authorities(options.caFile)).join("\n"));
    }
    const helper = options.credential === undefined ? undefined : await writeHelper(home, options.credential);
    const git = new Git(options, home, helper);
    const made = await git.run(["init", "--quiet", "--bare", "--template=", git.#gitDir], { isQuiet: true });
    if (made.code !== 0) {
      throw new Error(`git init: ${made.text}`);
    }
    return git;
  }

  /** Runs one command of git on the repository. */
  async run(
    args: readonly string[],
    options: {
      workTree?: string;
      timeoutMs?: number;
      isQuiet?: boolean;
      onStdout?: (chunk: Buffer) => void;
    } = {},
  ): Promise<ExitResult> {
    const { maxBytes, onOutput, signal } = this.#options;
    const words = [
      ...this.#config.flatMap((pair) => ["-c", pair]),
      ...(args[0] === "init" ? [] : [`--git-dir=${this.#gitDir}`]),
      ...(options.workTree === undefined ? [] : [`--work-tree=${options.workTree}`]),
      ...args,
    ];
    const settings: Options = {
      env: this.#env(),
      timeoutMs: options.timeoutMs,
      signal,
      // What is fetched is one file: the bound is exact.
      maxFileBytes: maxBytes,
      ...(options.isQuiet ? {} : { onOutput }),
      ...(options.onStdout === undefined ? {} : { onStdout: options.onStdout }),
    };
    return run("git", words, settings);
  }

  /** What a command prints, without the line's end; undefined when it fails. */
  async read(args: readonly string[]): Promise<string | undefined> {
    const chunks: Buffer[] = [];
    const { code } = await this.run(args, { isQuiet: true, onStdout: (chunk) => chunks.push(chunk) });
    return code === 0 ? Buffer.concat(chunks).toString("utf8").trimEnd() : undefined;
  }

  get hasCredential(): boolean {
    return this.#options.credential !== undefined;
  }

  /** Removes all that git has kept. */
  async close(): Promise<void> {
    await rm(this.#home, { recursive: true, force: true });
  }

  #env(): Record<string, string> {
    return {
      PATH: process.env.PATH ?? "/usr/bin:/bin",
      HOME: this.#home,
      LC_ALL: "C",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_TERMINAL_PROMPT: "0",
      GIT_ASKPASS: "/bin/false",
      SSH_ASKPASS: "/bin/false",
      GIT_PROTOCOL_FROM_USER: "0",
      GIT_LFS_SKIP_SMUDGE: "1",
      // It would go before the one that is configured.
      ...(process.env.SSL_CERT_FILE === undefined || this.#options.caFile !== undefined
        ? {}
        : { GIT_SSL_CAINFO: process.env.SSL_CERT_FILE }),
    };
  }
}

/** `host:port:address`, as curl takes it. */
function resolution(url: string, address: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port === "" ? "443" : port}:${address.includes(":") ? `[${address}]` : address}`;
}

/** The credential is in files, and the helper reads them: it is in no argument, no variable and no address. */
async function writeHelper(
  home: string,
  { usernameFile, passwordFile }: NonNullable<GitOptions["credential"]>,
): Promise<string> {
  const path = join(home, "credential-helper");
  const lines = [
    "#!/bin/sh",
    '[ "$1" = get ] || exit 0',
    `printf 'username=%s\\n' "$(cat ${quote(usernameFile)})"`,
    `printf 'password=%s\\n' "$(cat ${quote(passwordFile)})"`,
  ];
  await writeFile(path, `${lines.join("\n")}\n`, { mode: 0o700 });
  return path;
}

/** A word for a shell. */
function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** The ref that is requested when no commit is. */
export function wantedRef({ branch, tag }: Pick<FetchTask, "branch" | "tag">): string | undefined {
  return tag !== undefined ? `refs/tags/${tag}` : branch !== undefined ? `refs/heads/${branch}` : undefined;
}

/** A file, or a submodule (`commit`), of a commit. */
export interface TreeEntry {
  type: "blob" | "commit";
  /** `120000` is a symbolic link. */
  mode: string;
  /** Bytes; 0 of a submodule. */
  size: number;
  path: string;
  /** Of the file's content, or the submodule's commit. */
  id: string;
}

/** All of a commit, from what has been fetched: nothing is written. @throws Error when git cannot read it */
export async function listTree(git: Git, commit: string): Promise<TreeEntry[]> {
  const chunks: Buffer[] = [];
  const { code, text } = await git.run(["ls-tree", "-r", "-l", "-z", "--full-tree", commit], {
    isQuiet: true,
    onStdout: (chunk) => chunks.push(chunk),
  });
  if (code !== 0) {
    throw new Error(`git ls-tree: ${text}`);
  }
  return parseTree(Buffer.concat(chunks).toString("utf8"));
}

/** Reads `git ls-tree -r -l -z`. Pure. */
export function parseTree(text: string): TreeEntry[] {
  return text.split("\0").flatMap((line) => {
    const [, mode, type, id, size, path] =
      /^(\d+) (blob|commit) ([a-f0-9]+) +(\d+|-)\t(.*)$/s.exec(line) ?? [];
    return mode === undefined || path === undefined || id === undefined
      ? []
      : [
          {
            mode,
            type: type === "commit" ? "commit" : "blob",
            size: size === "-" ? 0 : Number(size),
            path,
            id,
          } as const,
        ];
  });
}

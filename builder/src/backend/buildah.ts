/** buildah: no daemon, no container runtime; each step runs in a `chroot`, in a user namespace that buildah creates. */

import { existsSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ExitResult, run } from "../exec.ts";
import {
  BackendUnavailable,
  type BuilderBackend,
  type BuildListener,
  type BuildOutcome,
  type BuildRequest,
} from "./backend.ts";
import { buildArguments, containersConf, policy, pushArguments, registriesConf } from "./buildah-config.ts";
import { BuildahOutput } from "./buildah-output.ts";
import { type RegistryMirror, startMirror } from "./registry-mirror.ts";

export interface BuildahOptions {
  /** Folder of layers and cache mounts, kept between builds. */
  root: string;
  scratch: string;
  /** Size above which the cache is emptied. */
  cacheBytes: number;
  /** Credentials for base images, by host. */
  registries: Record<string, { caFile?: string; token?: string }>;
}

/** Storage of layers: `overlay` where the kernel allows it without root, full copies otherwise. */
const drivers = ["overlay", "vfs"] as const;
const START_MS = 30_000;
/** How long measuring and removing the cache may take. */
const CLEAN_MS = 300_000;
/** Exit code of a killed process. */
const KILLED = 137;
/** A step without output is reported after so long. */
const SILENT_STEP_MS = 1_000;

export class Buildah implements BuilderBackend {
  readonly #options: BuildahOptions;
  readonly #env: Record<string, string>;
  /** Temporary files, and the cache mounts: buildah keeps both in one folder. */
  readonly #temporary: string;
  #driver: (typeof drivers)[number] = "overlay";
  #mirrors: RegistryMirror[] = [];

  private constructor(options: BuildahOptions) {
    const { root, scratch } = options;
    this.#options = options;
    this.#temporary = join(root, "tmp");
    this.#env = {
      PATH: process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin",
      HOME: scratch,
      XDG_RUNTIME_DIR: scratch,
      TMPDIR: this.#temporary,
      CONTAINERS_CONF: join(scratch, "containers.conf"),
    };
  }

  /** @throws BackendUnavailable when its storage cannot be opened in any way */
  static async start(options: BuildahOptions): Promise<Buildah> {
    const backend = new Buildah(options);
    try {
      await backend.#start();
    } catch (error) {
      await backend.#stopMirrors();
      throw error instanceof BackendUnavailable ? error : new BackendUnavailable(`buildah: ${String(error)}`);
    }
    return backend;
  }

  async build(request: BuildRequest, listener: BuildListener): Promise<BuildOutcome> {
    const deadline = Date.now() + request.timeoutMs;
    const { scratch } = this.#options;
    const idFile = join(scratch, "image-id");
    await rm(idFile, { force: true });
    const output = new BuildahOutput(listener);
    let quiet: NodeJS.Timeout | undefined;
    const args = buildArguments(request, { scratch, idFile, ignoreFile: await this.#ignoreFile(request) });
    const { code, timedOut } = await this.#buildah(args, {
      timeoutMs: request.timeoutMs,
      signal: request.signal,
      onOutput: (chunk) => {
        clearTimeout(quiet);
        output.push(chunk);
        quiet = setTimeout(() => output.flush(), SILENT_STEP_MS);
      },
    }).finally(() => clearTimeout(quiet));
    output.end(code === 0);
    if (code === KILLED && !timedOut && !output.hasError) {
      throw new BackendUnavailable("buildah was killed.");
    }
    if (code !== 0) {
      return output.failure(timedOut);
    }
    const id = (await readFile(idFile, "utf8")).trim();
    const pushed = await this.#buildah(pushArguments(id, request.output, scratch), {
      timeoutMs: Math.max(1, deadline - Date.now()),
      signal: request.signal,
    });
    return pushed.code === 0 ? { ok: true } : { ok: false, timedOut: pushed.timedOut, text: pushed.text };
  }

  async close(): Promise<void> {
    await this.#stopMirrors();
    // A failed step leaves its container, with its mounted secrets.
    await this.#buildah(["rm", "--all"], { timeoutMs: START_MS });
    await this.#limitCache();
  }

  async #start(): Promise<void> {
    const { root, scratch, registries } = this.#options;
    const helpers = join(scratch, "helpers");
    for (const folder of [root, this.#temporary, helpers, join(scratch, "registries.d")]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
    }
    // buildah requires this program even when it creates no network.
    await symlink("/bin/false", join(helpers, "netavark")).catch(ignoreExisting);
    const locations: Record<string, string> = {};
    for (const [host, { caFile, token }] of Object.entries(registries)) {
      const ca = caFile === undefined ? undefined : await readFile(caFile, "utf8");
      const mirror = await startMirror({ host, ca, token });
      this.#mirrors.push(mirror);
      locations[host] = mirror.address;
    }
    await writeFile(join(scratch, "containers.conf"), containersConf(helpers));
    await writeFile(join(scratch, "registries.conf"), registriesConf(locations));
    await writeFile(join(scratch, "policy.json"), policy);
    if (existsSync(this.#discarded)) {
      await this.#remove([this.#discarded]);
    }
    await this.#clearTemporary();
    await this.#openStorage();
    // Containers of a killed build; left alone they would only use disk.
    await this.#buildah(["rm", "--all"], { timeoutMs: CLEAN_MS });
  }

  /** Uses the first storage driver that works. */
  async #openStorage(): Promise<void> {
    let said = "";
    for (const driver of drivers) {
      this.#driver = driver;
      const { code, text } = await this.#buildah(["images", "--quiet"], { timeoutMs: START_MS });
      if (code === 0) {
        return;
      }
      said = text;
    }
    throw new BackendUnavailable(
      `buildah did not start: ${said.trim().split("\n").at(-1) ?? ""}`.slice(0, 500),
    );
  }

  #buildah(
    args: readonly string[],
    options: { timeoutMs: number; signal?: AbortSignal; onOutput?(chunk: Buffer): void },
  ): Promise<ExitResult> {
    const { root, scratch } = this.#options;
    const global = [
      "--log-level=error",
      `--root=${root}`,
      `--runroot=${join(scratch, "run")}`,
      `--storage-driver=${this.#driver}`,
      `--registries-conf=${join(scratch, "registries.conf")}`,
      `--registries-conf-dir=${join(scratch, "registries.d")}`,
    ];
    // Both streams as one: otherwise errors cannot be attributed to steps.
    const words = ["-c", 'exec "$0" "$@" 2>&1', "buildah", ...global, ...args];
    return run("/bin/sh", words, { env: this.#env, ...options });
  }

  /** The repository's own, unless the platform has written one: by default buildah also reads `.containerignore`. */
  async #ignoreFile({ context, dockerfile }: BuildRequest): Promise<string> {
    for (const file of [join(dockerfile, "Dockerfile.dockerignore"), join(context, ".dockerignore")]) {
      if ((await lstat(file).catch(() => undefined))?.isFile()) {
        return file;
      }
    }
    const none = join(this.#options.scratch, "no-ignore");
    await writeFile(none, "");
    return none;
  }

  get #discarded(): string {
    return `${this.#options.root}.gone`;
  }

  async #clearTemporary(): Promise<void> {
    const names = (await readdir(this.#temporary)).filter((name) => !name.startsWith("buildah-cache"));
    if (names.length > 0) {
      await this.#remove(names.map((name) => join(this.#temporary, name)));
    }
  }

  /** buildah keeps all layers for ever, and does not record their use: above the limit all of them are removed. */
  async #limitCache(): Promise<void> {
    const { root, cacheBytes } = this.#options;
    if (!existsSync(root)) {
      return;
    }
    const { code, text } = await this.#asNamespaceRoot(["du", "-s", "--block-size=1", root]);
    if (code === 0 && Number(/^(\d+)\t/m.exec(text)?.[1]) > cacheBytes) {
      // Renamed first: the rest of an interrupted removal would be taken for layers.
      await rename(root, this.#discarded);
      await this.#remove([this.#discarded]);
    }
  }

  async #remove(paths: string[]): Promise<void> {
    await this.#asNamespaceRoot(["rm", "-rf", ...paths]);
  }

  /** Runs a command as root of the user namespace: files of the cache belong to its other users. */
  #asNamespaceRoot(command: string[]): Promise<ExitResult> {
    if (process.getuid?.() === 0) {
      const [program = "", ...args] = command;
      return run("/bin/sh", ["-c", 'exec "$0" "$@" 2>&1', program, ...args], {
        env: this.#env,
        timeoutMs: CLEAN_MS,
      });
    }
    return this.#buildah(["unshare", ...command], { timeoutMs: CLEAN_MS });
  }

  async #stopMirrors(): Promise<void> {
    const mirrors = this.#mirrors;
    this.#mirrors = [];
    await Promise.all(mirrors.map((mirror) => mirror.close()));
  }
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") {
    throw error;
  }
}

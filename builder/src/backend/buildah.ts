/** buildah: no daemon, no container runtime; each step runs in a `chroot`, in the user namespace that buildah makes for itself. */

import { existsSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Ended, run } from "../exec.ts";
import {
  type BuildListener,
  type BuildOutcome,
  type BuildRequest,
  type Engine,
  EngineUnavailable,
} from "./backend.ts";
import { containersConf, policy, registriesConf } from "./buildah-config.ts";
import { BuildahOutput } from "./buildah-output.ts";
import { type RegistryMirror, startMirror } from "./registry-mirror.ts";

export interface BuildahOptions {
  /** Where layers and cache mounts outlive the build. */
  root: string;
  scratch: string;
  /** Above it the cache is emptied. */
  cacheBytes: number;
  /** By host: what the base images there are read with. */
  registries: Record<string, { caFile?: string; token?: string }>;
}

/** How layers are kept: `overlay` where the kernel has it for users without rights, copies of everything otherwise. */
const drivers = ["overlay", "vfs"] as const;
const START_MS = 30_000;
/** How long what is not needed any more may take to be measured and removed. */
const CLEAN_MS = 300_000;
/** Exit code of what was killed. */
const KILLED = 137;
/** After which a step that says nothing is told of. */
const QUIET_MS = 1_000;

export class Buildah implements Engine {
  readonly #options: BuildahOptions;
  readonly #env: Record<string, string>;
  /** Temporary files, and the cache mounts beside them: buildah keeps both in one folder. */
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

  /** @throws EngineUnavailable when its storage cannot be opened in any way */
  static async start(options: BuildahOptions): Promise<Buildah> {
    const engine = new Buildah(options);
    try {
      await engine.#start();
    } catch (error) {
      await engine.#stopMirrors();
      throw error instanceof EngineUnavailable ? error : new EngineUnavailable(`buildah: ${String(error)}`);
    }
    return engine;
  }

  async build(request: BuildRequest, listener: BuildListener): Promise<BuildOutcome> {
    const deadline = Date.now() + request.timeoutMs;
    const { scratch } = this.#options;
    const idFile = join(scratch, "image-id");
    await rm(idFile, { force: true });
    const output = new BuildahOutput(listener);
    let quiet: NodeJS.Timeout | undefined;
    const args = [
      "bud",
      "--isolation=chroot",
      // A network of its own would need a program and rights for it: steps have the container's, as they have with BuildKit.
      "--network=host",
      "--http-proxy=false",
      "--layers",
      "--force-rm",
      // OCI's own format knows no SHELL, which buildah would then leave out of steps: it is converted at the end.
      "--format=docker",
      "--pull=always",
      "--retry=1",
      "--retry-delay=1s",
      `--signature-policy=${join(scratch, "policy.json")}`,
      `--file=${join(request.dockerfile, "Dockerfile")}`,
      `--ignorefile=${await this.#ignoreFile(request)}`,
      `--iidfile=${idFile}`,
      ...Object.entries(request.args).map(([name, value]) => `--build-arg=${name}=${value}`),
      ...Object.entries(request.secrets).map(([id, file]) => `--secret=id=${id},src=${file}`),
      request.context,
    ];
    const { code, timedOut } = await this.#buildah(args, {
      timeoutMs: request.timeoutMs,
      signal: request.signal,
      onOutput: (chunk) => {
        clearTimeout(quiet);
        output.push(chunk);
        quiet = setTimeout(() => output.flush(), QUIET_MS);
      },
    }).finally(() => clearTimeout(quiet));
    output.end(code === 0);
    if (code === KILLED && !timedOut && !output.isExplained) {
      throw new EngineUnavailable("buildah was killed.");
    }
    if (code !== 0) {
      return output.failure(timedOut);
    }
    const id = (await readFile(idFile, "utf8")).trim();
    const pushed = await this.#buildah(
      [
        "push",
        `--signature-policy=${join(scratch, "policy.json")}`,
        "--format=oci",
        id,
        `oci:${request.output}`,
      ],
      { timeoutMs: Math.max(1, deadline - Date.now()), signal: request.signal },
    );
    return pushed.code === 0 ? { ok: true } : { ok: false, timedOut: pushed.timedOut, text: pushed.text };
  }

  async close(): Promise<void> {
    await this.#stopMirrors();
    // A step that failed leaves its container, with the secrets that it had mounted.
    await this.#buildah(["rm", "--all"], { timeoutMs: START_MS });
    await this.#boundCache();
  }

  async #start(): Promise<void> {
    const { root, scratch, registries } = this.#options;
    const helpers = join(scratch, "helpers");
    for (const folder of [root, this.#temporary, helpers, join(scratch, "registries.d")]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
    }
    // It looks for this program before it knows that no network is to be made.
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
    if (existsSync(this.#gone)) {
      await this.#remove([this.#gone]);
    }
    await this.#clearTemporary();
    await this.#openStorage();
    // What a killed build has left; should it stay, the next ones only take more room.
    await this.#buildah(["rm", "--all"], { timeoutMs: CLEAN_MS });
  }

  /** Takes the first way to keep layers that works. */
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
    throw new EngineUnavailable(
      `buildah did not start: ${said.trim().split("\n").at(-1) ?? ""}`.slice(0, 500),
    );
  }

  #buildah(
    args: readonly string[],
    options: { timeoutMs: number; signal?: AbortSignal; onOutput?(chunk: Buffer): void },
  ): Promise<Ended> {
    const { root, scratch } = this.#options;
    const global = [
      "--log-level=error",
      `--root=${root}`,
      `--runroot=${join(scratch, "run")}`,
      `--storage-driver=${this.#driver}`,
      `--registries-conf=${join(scratch, "registries.conf")}`,
      `--registries-conf-dir=${join(scratch, "registries.d")}`,
    ];
    // Both streams as one: otherwise nobody knows which step an error belongs to.
    const words = ["-c", 'exec "$0" "$@" 2>&1', "buildah", ...global, ...args];
    return run("/bin/sh", words, { env: this.#env, ...options });
  }

  /** The repository's own, unless the platform has written one: buildah would take a `.containerignore`, too. */
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

  get #gone(): string {
    return `${this.#options.root}.gone`;
  }

  async #clearTemporary(): Promise<void> {
    const names = (await readdir(this.#temporary)).filter((name) => !name.startsWith("buildah-cache"));
    if (names.length > 0) {
      await this.#remove(names.map((name) => join(this.#temporary, name)));
    }
  }

  /** buildah keeps all layers for ever, and does not know which were of use: above the bound all of them go. */
  async #boundCache(): Promise<void> {
    const { root, cacheBytes } = this.#options;
    if (!existsSync(root)) {
      return;
    }
    const { code, text } = await this.#asRootOfIt(["du", "-s", "--block-size=1", root]);
    if (code === 0 && Number(/^(\d+)\t/m.exec(text)?.[1]) > cacheBytes) {
      // At once: whatever is left of a removal that is cut off would be taken for layers.
      await rename(root, this.#gone);
      await this.#remove([this.#gone]);
    }
  }

  async #remove(paths: string[]): Promise<void> {
    await this.#asRootOfIt(["rm", "-rf", ...paths]);
  }

  /** Files of the cache belong to other users of the namespace. */
  #asRootOfIt(command: string[]): Promise<Ended> {
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

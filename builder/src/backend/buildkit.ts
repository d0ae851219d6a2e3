/** BuildKit, started for one build: rootless unless the process is root, and stopped with the build. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "../exec.ts";
import {
  BackendUnavailable,
  type BuilderBackend,
  type BuildListener,
  type BuildOutcome,
  type BuildRequest,
} from "./backend.ts";
import { BuildkitProgress } from "./progress.ts";

export interface BuildkitOptions {
  /** Folder of layers and cache mounts, kept between builds. */
  root: string;
  scratch: string;
  cacheBytes: number;
  /** By host. */
  registries: Record<string, { caFile?: string }>;
  /** Folder with Docker's `config.json`. */
  registryConfig?: string;
  /** Folder of its programs, first in the PATH. */
  bin?: string;
  /** Whether to run rootless; by default, unless the process is root. */
  rootless?: boolean;
}

const START_MS = 30_000;
const STOP_MS = 10_000;
/** How long to wait for the stderr of an exited daemon, and how many characters of it are kept. */
const STDERR_FLUSH_MS = 2_000;
const STDERR_TAIL_CHARACTERS = 4_000;

export class Buildkit implements BuilderBackend {
  readonly #options: BuildkitOptions;
  readonly #address: string;
  readonly #env: Record<string, string>;
  readonly #log: string;
  #daemon: ReturnType<typeof spawn> | undefined;

  private constructor(options: BuildkitOptions) {
    this.#options = options;
    const { scratch, bin, registryConfig } = options;
    this.#address = `unix://${join(scratch, "buildkitd.sock")}`;
    this.#log = join(scratch, "buildkitd.log");
    this.#env = {
      PATH: [bin, process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin"]
        .filter((part) => part !== undefined)
        .join(":"),
      HOME: scratch,
      XDG_RUNTIME_DIR: scratch,
      TMPDIR: scratch,
      ...(registryConfig === undefined ? {} : { DOCKER_CONFIG: registryConfig }),
    };
  }

  /** @throws BackendUnavailable when it does not serve in time */
  static async start(options: BuildkitOptions): Promise<Buildkit> {
    await mkdir(options.scratch, { recursive: true, mode: 0o700 });
    const backend = new Buildkit(options);
    await backend.#start();
    return backend;
  }

  async build(request: BuildRequest, listener: BuildListener): Promise<BuildOutcome> {
    const progress = new BuildkitProgress(listener, request.commands);
    const args = [
      `--addr=${this.#address}`,
      "build",
      "--progress=rawjson",
      "--frontend=dockerfile.v0",
      // Otherwise a line `# syntax=` makes BuildKit pull and run another frontend.
      "--opt=cmdline=dockerfile.v0",
      `--local=context=${request.context}`,
      `--local=dockerfile=${request.dockerfile}`,
      ...Object.entries(request.args).map(([name, value]) => `--opt=build-arg:${name}=${value}`),
      ...Object.entries(request.secrets).map(([id, file]) => `--secret=id=${id},src=${file}`),
      `--output=type=oci,tar=false,dest=${request.output}`,
    ];
    const { code, timedOut } = await run("buildctl", args, {
      env: this.#env,
      timeoutMs: request.timeoutMs,
      signal: request.signal,
      onOutput: (chunk) => progress.push(chunk),
    });
    progress.end();
    return code === 0 ? { ok: true } : progress.failure(timedOut);
  }

  async close(): Promise<void> {
    const daemon = this.#daemon;
    if (daemon?.pid === undefined || daemon.exitCode !== null || daemon.signalCode !== null) {
      return;
    }
    const ended = once(daemon, "exit");
    daemon.kill("SIGTERM");
    await Promise.race([ended, sleep(STOP_MS, undefined, { ref: false })]);
    try {
      // rootlesskit's children, or processes that a step has left behind.
      process.kill(-daemon.pid, "SIGKILL");
    } catch {
      // All of them have exited.
    }
  }

  async #start(): Promise<void> {
    const { root, scratch, rootless = process.getuid?.() !== 0 } = this.#options;
    const config = join(scratch, "buildkitd.toml");
    await writeFile(config, buildkitConfig(this.#options));
    const flags = [`--config=${config}`, `--root=${root}`, `--addr=${this.#address}`];
    const [program, args] = rootless
      ? [
          "rootlesskit",
          [
            "--net=host",
            "--copy-up=/run",
            "buildkitd",
            "--rootless",
            "--oci-worker-no-process-sandbox",
            ...flags,
          ],
        ]
      : ["buildkitd", flags];
    const daemon = spawn(program, args, {
      env: this.#env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    this.#daemon = daemon;
    const log = createWriteStream(this.#log, { mode: 0o600 });
    daemon.stdout.pipe(log);
    daemon.stderr.pipe(log);
    // The exit is seen before its stderr is complete: that of a process that exits immediately would be missing in the file.
    let stderr = "";
    daemon.stderr.on("data", (chunk: Buffer) => {
      stderr = `${stderr}${chunk.toString("utf8")}`.slice(-STDERR_TAIL_CHARACTERS);
    });
    const closed = new Promise<void>((resolve) => daemon.once("close", () => resolve()));
    let failed: Error | undefined;
    daemon.on("error", (error) => {
      failed = error;
    });
    const deadline = Date.now() + START_MS;
    const isAlive = (): boolean =>
      failed === undefined && daemon.exitCode === null && daemon.signalCode === null;
    while (Date.now() < deadline && isAlive()) {
      const workers = await run("buildctl", [`--addr=${this.#address}`, "debug", "workers"], {
        env: this.#env,
        timeoutMs: 5_000,
      }).catch((error: Error) => {
        failed = error;
      });
      if (workers?.code === 0) {
        return;
      }
      await sleep(50);
    }
    await this.close();
    await Promise.race([closed, sleep(STDERR_FLUSH_MS)]);
    const reason = failed?.message ?? stderr.trim().split("\n").at(-1);
    throw new BackendUnavailable(`buildkitd did not start: ${reason ?? ""}`.slice(0, 500));
  }
}

/** buildkitd.toml: one worker, a bounded cache, and the registries' authorities. Pure. */
export function buildkitConfig({
  cacheBytes,
  registries,
}: Pick<BuildkitOptions, "cacheBytes" | "registries">): string {
  const text = (value: string): string => JSON.stringify(value);
  return [
    "[worker.containerd]",
    "enabled = false",
    "[worker.oci]",
    "enabled = true",
    "gc = true",
    "max-parallelism = 2",
    "[[worker.oci.gcpolicy]]",
    "all = true",
    `maxUsedSpace = ${cacheBytes}`,
    ...Object.entries(registries).flatMap(([host, { caFile }]) => [
      `[registry.${text(host)}]`,
      ...(caFile === undefined ? [] : [`ca = [${text(caFile)}]`]),
    ]),
    "",
  ].join("\n");
}

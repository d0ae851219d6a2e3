/** The steps of a build with a real builder backend and a real registry, on this machine. The base image is its shell. */

import { type ChildProcess, execFileSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync } from "node:fs";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Buildkit } from "../../../builder/src/backend/buildkit.ts";
import { type LogLine, parseLogLine } from "../../../builder/src/log/line.ts";
import { Redactor } from "../../../builder/src/log/redact.ts";
import { Log } from "../../../builder/src/log/writer.ts";
import { type Paths, workPaths } from "../../../builder/src/paths.ts";
import { pushStep } from "../../../builder/src/push/step.ts";
import { runStep } from "../../../builder/src/runner.ts";
import type { BackendName, Step, Task } from "../../../builder/src/task.ts";
import { ensureBinary } from "../../../hack/cluster/binaries.ts";
import { freePorts } from "../../../hack/lib/ports.ts";
import { startRegistry } from "../servers/registry.ts";
import { removeStorage } from "./storage.ts";

/** Value of the project's one variable, `TOKEN`. */
export const CANARY = "canary-3f9a 'it' $(id)";

/** Longest time of a step, unless a test is about it: builds wait for processors where other tests run. */
const BUILD_SECONDS = 360;

/** A log that nobody reads. */
export const quiet = new Log({
  step: "push",
  redactor: new Redactor({}),
  write: () => undefined,
  now: () => new Date(),
});

export interface BuildOptions {
  /** The checkout, in place of a repository that is fetched. */
  files?: Record<string, string>;
  /** Address of a repository, whose branch `main` is fetched. */
  repository?: string;
  settings?: Extract<Task, { step: "plan" }>["settings"];
  timeoutSeconds?: number;
  maxImageBytes?: number;
  backend?: BackendName;
}

export class BuildHarness {
  readonly folder: string;
  /** Of the registry. */
  readonly host: string;
  readonly #registry: ChildProcess;
  readonly #path: string | undefined;
  readonly #backend: BackendName;
  #count = 0;

  private constructor(
    folder: string,
    host: string,
    registry: ChildProcess,
    path: string | undefined,
    backend: BackendName,
  ) {
    this.#backend = backend;
    this.folder = folder;
    this.host = host;
    this.#registry = registry;
    this.#path = path;
  }

  static async start(backend: BackendName = "buildkit"): Promise<BuildHarness> {
    const folder = await mkdtemp(join(tmpdir(), "slipway-buildkit-"));
    const binaries = await Promise.all((["buildkitd", "buildctl", "rootlesskit"] as const).map(ensureBinary));
    const path = process.env.PATH;
    process.env.PATH = [...binaries.map((file) => dirname(file)), path].join(":");
    const [port = 0] = await freePorts(1);
    const host = `127.0.0.1:${port}`;
    const registry = await startRegistry(folder, host);
    const harness = new BuildHarness(folder, host, registry, path, backend);
    await harness.#makeBase();
    return harness;
  }

  async stop(): Promise<void> {
    process.env.PATH = this.#path;
    if (this.#registry.exitCode === null) {
      this.#registry.kill("SIGKILL");
      await once(this.#registry, "exit");
    }
    await removeStorage(this.folder);
  }

  async #makeBase(): Promise<void> {
    const { folder, host } = this;
    const work = join(folder, "base");
    const context = join(work, "context");
    for (const file of shellFiles()) {
      mkdirSync(dirname(join(context, file)), { recursive: true });
      copyFileSync(file, join(context, file));
    }
    await writeFile(join(context, ".dockerignore"), "");
    await mkdir(join(work, "dockerfile"));
    await writeFile(join(work, "dockerfile/Dockerfile"), 'FROM scratch\nCOPY . /\nENV PATH="/bin"\n');
    const backend = await Buildkit.start({
      root: join(folder, "cache"),
      scratch: join(folder, "start"),
      cacheBytes: 1e9,
      registries: {},
    });
    const output = () => {
      throw new Error("nothing runs");
    };
    const outcome = await backend.build(
      {
        context,
        dockerfile: join(work, "dockerfile"),
        secrets: {},
        args: {},
        commands: {},
        output: join(work, "image"),
        timeoutMs: BUILD_SECONDS * 1_000,
      },
      { step: () => undefined, output },
    );
    await backend.close();
    if (!outcome.ok) {
      throw new Error(`the base image: ${outcome.text}`);
    }
    const paths = { work, secrets: join(work, "secrets"), cache: work };
    await pushStep({
      task: {
        step: "push",
        repository: `${host}/base/shell`,
        tag: "1",
        maxImageBytes: 1e9,
        timeoutSeconds: BUILD_SECONDS,
      },
      log: quiet,
      paths,
    });
  }

  /** Fetches if there is a repository, plans, builds and pushes, until a step fails. */
  async build({
    files = {},
    repository,
    settings = {},
    timeoutSeconds = BUILD_SECONDS,
    maxImageBytes = 1e8,
    backend = this.#backend,
  }: BuildOptions) {
    const { folder, host } = this;
    const root = join(folder, `build-${this.#count++}`);
    const paths: Paths = {
      work: join(root, "work"),
      secrets: join(root, "secrets"),
      cache: join(folder, "cache"),
    };
    await mkdir(join(paths.secrets, "envs"), { recursive: true });
    await writeFile(join(paths.secrets, "envs/TOKEN"), CANARY);
    const { source, image, plan } = workPaths(paths);
    for (const [file, text] of Object.entries(files)) {
      await mkdir(dirname(join(source, file)), { recursive: true });
      await writeFile(join(source, file), text);
    }
    // BuildKit detects itself that a registry on loopback serves plain HTTP, unless that registry is configured.
    const registries = backend === "buildah" ? { [host]: {} } : {};
    const lines: LogLine[] = [];
    const bounds = { maxBytes: 2_000_000, maxFiles: 1_000, timeoutSeconds };
    const from = { provider: "forgejo", branch: "main", ...bounds } as const;
    const tasks: Task[] = [
      ...(repository === undefined ? [] : [{ step: "fetch", url: repository, ...from } as const]),
      { step: "plan", settings, images: { node: { "24": `${host}/base/shell:1` } }, port: 8080 },
      { step: "build", engine: backend, registries, cacheBytes: 1e9, maxImageBytes, timeoutSeconds },
      { step: "push", repository: `${host}/shop/one`, maxImageBytes: 1e9, timeoutSeconds: BUILD_SECONDS },
    ];
    let last: Awaited<ReturnType<typeof runStep>> | undefined;
    for (const task of tasks) {
      const step: Step = task.step;
      last = await runStep({
        step,
        tasks: JSON.stringify(tasks),
        paths,
        write: (text) => {
          const line = parseLogLine(text) as LogLine;
          if (!line.last) {
            lines.push(line);
          }
        },
      });
      if (last.exitCode !== 0) {
        break;
      }
    }
    return {
      ...last?.result,
      exitCode: last?.exitCode,
      lines,
      text: lines.map(({ message }) => message).join("\n"),
      image,
      source,
      /** Folder of the Dockerfile. */
      plan,
      root,
    };
  }
}

/** /bin/sh of this machine and the libraries that it links to. */
function shellFiles(): string[] {
  const linked = execFileSync("ldd", ["/bin/sh"]).toString("utf8");
  return ["/bin/sh", ...[...linked.matchAll(/(\/\S+)\s+\(0x/g)].map(([, file]) => file ?? "")];
}

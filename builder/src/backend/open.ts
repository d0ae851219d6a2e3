/** Opens the backend of one build, with the caches, registries and tokens of its container. */

import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { StepError } from "../failures/codes.ts";
import type { Log } from "../log/writer.ts";
import { type Paths, secretPaths, workPaths } from "../paths.ts";
import type { BackendName, BuildTask } from "../task.ts";
import { BackendUnavailable, type BuilderBackend } from "./backend.ts";
import { Buildah } from "./buildah.ts";
import { Buildkit } from "./buildkit.ts";
import { probeBackend } from "./probe.ts";
import { forgetSelection, privilegeFingerprint, selectBackend } from "./select.ts";

export interface OpenOptions {
  task: BuildTask;
  log: Pick<Log, "info">;
  paths: Paths;
  signal?: AbortSignal;
}

/** Starts the backend, and closes it after its use. @throws BackendUnavailable when none can run */
export async function withBackend<T>(
  options: OpenOptions,
  use: (backend: BuilderBackend) => Promise<T>,
): Promise<T> {
  const { task, log, paths, signal } = options;
  const recordFile = join(paths.cache, "engine.json");
  await mkdir(paths.cache, { recursive: true });
  const backend = await selectBackend({
    setting: task.engine,
    recordFile,
    log,
    start: (name) => start(name, options),
    probe: (each) => probeBackend(each, join(workPaths(paths).scratch, "probe"), signal),
    fingerprint: await privilegeFingerprint(),
    now: () => new Date(),
  });
  try {
    return await use(backend);
  } catch (error) {
    if (isBackendFault(error)) {
      await forgetSelection(recordFile);
    }
    throw error;
  } finally {
    await backend.close();
  }
}

const isBackendFault = (error: unknown): boolean =>
  error instanceof BackendUnavailable ||
  (error instanceof StepError && error.failure.code === "BUILD_ENGINE_FAILED");

async function start(name: BackendName, { task, paths }: OpenOptions): Promise<BuilderBackend> {
  const { scratch } = workPaths(paths);
  const { registry } = secretPaths(paths);
  const { cacheBytes, registries } = task;
  if (name === "buildah") {
    const tokens = await registryTokens(join(registry, "config.json"));
    return Buildah.start({
      root: join(paths.cache, "buildah"),
      scratch: join(scratch, "buildah"),
      cacheBytes,
      registries: Object.fromEntries(
        Object.entries(registries).map(([host, settings]) => [host, { ...settings, token: tokens[host] }]),
      ),
    });
  }
  return Buildkit.start({
    root: paths.cache,
    scratch: join(scratch, "buildkit"),
    cacheBytes,
    registries,
    registryConfig: existsSync(registry) ? registry : undefined,
  });
}

const dockerConfig = z.object({
  auths: z.record(z.string(), z.object({ registrytoken: z.string().optional() })).default({}),
});

/** Tokens of Docker's `config.json` by host; none when there is no file. */
async function registryTokens(file: string): Promise<Record<string, string | undefined>> {
  if (!existsSync(file)) {
    return {};
  }
  const { auths } = dockerConfig.parse(JSON.parse(await readFile(file, "utf8")));
  return Object.fromEntries(Object.entries(auths).map(([host, { registrytoken }]) => [host, registrytoken]));
}

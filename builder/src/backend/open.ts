/** The engine of one build, with what this build's container has for it. */

import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { StepError } from "../failures/step-error.ts";
import type { Log } from "../log/writer.ts";
import { type Paths, secretPaths, workPaths } from "../paths.ts";
import type { BuildTask } from "../task.ts";
import { type Engine, EngineUnavailable } from "./backend.ts";
import { Buildah } from "./buildah.ts";
import { Buildkit } from "./buildkit.ts";
import type { EngineName } from "./names.ts";
import { tryEngine } from "./probe.ts";
import { chooseEngine, forgetChoice, rightsHere } from "./select.ts";

export interface OpenOptions {
  task: BuildTask;
  log: Pick<Log, "info">;
  paths: Paths;
  signal?: AbortSignal;
}

/** Starts the engine, and ends it with its use. @throws EngineUnavailable when none can run */
export async function withEngine<T>(options: OpenOptions, use: (engine: Engine) => Promise<T>): Promise<T> {
  const { task, log, paths, signal } = options;
  const recordFile = join(paths.cache, "engine.json");
  await mkdir(paths.cache, { recursive: true });
  const engine = await chooseEngine({
    setting: task.engine,
    recordFile,
    log,
    start: (name) => start(name, options),
    attempt: (each) => tryEngine(each, join(workPaths(paths).scratch, "trial"), signal),
    conditions: await rightsHere(),
    now: () => new Date(),
  });
  try {
    return await use(engine);
  } catch (error) {
    if (isEnginesFault(error)) {
      await forgetChoice(recordFile);
    }
    throw error;
  } finally {
    await engine.close();
  }
}

const isEnginesFault = (error: unknown): boolean =>
  error instanceof EngineUnavailable ||
  (error instanceof StepError && error.failure.code === "BUILD_ENGINE_FAILED");

async function start(name: EngineName, { task, paths }: OpenOptions): Promise<Engine> {
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

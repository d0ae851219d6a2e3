/** The step `build`: builds the planned image. */

import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { classify } from "../failures/classify.ts";
import { failure, StepError } from "../failures/codes.ts";
import type { Log } from "../log/writer.ts";
import { type Paths, secretPaths, workPaths } from "../paths.ts";
import { CA_SECRET, ENV_REVISION_ARG, ENV_SECRET } from "../plan/dockerfile.ts";
import { type PlanFile, planFile } from "../plan/step.ts";
import type { BuildTask } from "../task.ts";
import type { BuilderBackend, BuildOutcome } from "./backend.ts";
import { exportScript, readVariables, variablesRevision } from "./variables.ts";

export interface BuildContext {
  task: BuildTask;
  log: Log;
  paths: Paths;
  backend: BuilderBackend;
  signal?: AbortSignal;
}

/** @throws StepError when the build failed */
export async function buildStep({ task, log, paths, backend, signal }: BuildContext): Promise<void> {
  const { plan: folder, planFile: file, image, scratch } = workPaths(paths);
  const plan = planFile.parse(JSON.parse(await readFile(file, "utf8")));
  await rm(image, { recursive: true, force: true });
  await mkdir(scratch, { recursive: true });
  const { secrets, revision } = await prepareSecrets(task, log, paths);
  const outcome = await backend.build(
    {
      context: plan.root,
      dockerfile: folder,
      secrets,
      args: { [ENV_REVISION_ARG]: revision },
      commands: plan.commands,
      output: image,
      timeoutMs: task.timeoutSeconds * 1000,
      signal,
    },
    {
      step: (name, cached) => log.info(cached ? `${name} (cached)` : name),
      output: () => log.output(),
    },
  );
  if (!outcome.ok) {
    throw new StepError(
      classify({ step: "build", ...describe(outcome, plan), limit: `${task.timeoutSeconds} s` }),
    );
  }
  const bytes = await folderBytes(image);
  if (bytes > task.maxImageBytes) {
    const limits = `${megabytes(bytes)}, at most ${megabytes(task.maxImageBytes)}`;
    throw new StepError(failure("BUILD_IMAGE_TOO_LARGE", { name: limits }));
  }
  log.info(`The image is made: ${megabytes(bytes)} packed.`);
}

function describe(
  { timedOut, stage, step, exitCode, text }: Extract<BuildOutcome, { ok: false }>,
  plan: PlanFile,
) {
  const isOwnFile = plan.runtime === "dockerfile";
  const phase = isOwnFile
    ? "dockerfile"
    : stage === undefined
      ? undefined
      : (plan.stages[stage] ?? "package");
  return {
    timedOut,
    phase,
    command: step?.replace(/^RUN /, "").slice(0, 200),
    exitCode,
    text,
    own: isOwnFile || (step !== undefined && plan.ownCommands.includes(step)),
  } as const;
}

/** Files that steps of the build can mount: never part of a layer, of a cache key or of the history. */
async function prepareSecrets(task: BuildTask, log: Log, paths: Paths) {
  const { envs: envFolder, tools: toolFolder } = secretPaths(paths);
  const { scratch } = workPaths(paths);
  const [envs, tools] = await Promise.all([readVariables(envFolder), readVariables(toolFolder)]);
  const { text, leftOut } = exportScript(
    tools,
    envs,
    task.caFile === undefined ? undefined : `/run/secrets/${CA_SECRET}`,
  );
  if (leftOut.length > 0) {
    log.info(`Not set while building: ${leftOut.join(", ")}.`);
  }
  const script = join(scratch, "variables.sh");
  await writeFile(script, text, { mode: 0o600 });
  const own = Object.keys(envs).filter((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  return {
    revision: await variablesRevision(JSON.stringify([text, await authorities(task)]), paths.cache),
    secrets: {
      // For Dockerfiles of the repository: --mount=type=secret,id=NAME.
      ...Object.fromEntries(own.map((name) => [name, join(envFolder, name)])),
      [ENV_SECRET]: script,
      ...(task.caFile === undefined ? {} : { [CA_SECRET]: task.caFile }),
    },
  };
}

async function authorities({ caFile }: BuildTask): Promise<string | undefined> {
  return caFile === undefined ? undefined : readFile(caFile, "utf8");
}

async function folderBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map((entry) => stat(join(entry.parentPath, entry.name)));
  return (await Promise.all(sizes)).reduce((sum, { size }) => sum + size, 0);
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/** Runs one step of a build: task in, log lines and a result out. */

import { existsSync } from "node:fs";
import { mkdir, realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BackendUnavailable, type WithBackend } from "./backend/backend.ts";
import { withBackend } from "./backend/open.ts";
import { buildStep } from "./backend/step.ts";
import { readVariables } from "./backend/variables.ts";
import { failure, isPassing, StepError } from "./failures/codes.ts";
import { fetchSource } from "./fetch/step.ts";
import { Redactor } from "./log/redact.ts";
import { Log } from "./log/writer.ts";
import { type Paths, secretPaths, workPaths } from "./paths.ts";
import { planStep } from "./plan/step.ts";
import { pushStep } from "./push/step.ts";
import { readRegularFile } from "./regular-file.ts";
import { exitCodes, type StepResult } from "./result.ts";
import { parseTask, type Step, steps } from "./task.ts";

export interface RunnerOptions {
  step: Step;
  /** JSON of the container's tasks, this step's among them. */
  tasks: string | undefined;
  paths: Paths;
  /** The backend of the step `build`; opened on demand unless given. */
  backend?: WithBackend;
  /** Writes a line of the log. */
  write(line: string): void;
  signal?: AbortSignal;
  now?: () => Date;
}

/** @returns the result, and the container's exit code for it */
export async function runStep(options: RunnerOptions): Promise<{ result: StepResult; exitCode: number }> {
  const { step, paths, write, now = () => new Date() } = options;
  const used = await readLogUsed(paths);
  const log = new Log({ step, redactor: new Redactor(await readSecrets(paths)), write, now, used });
  try {
    const report = await executeStep(options, log);
    return { result: { step, ...report }, exitCode: exitCodes.done };
  } catch (error) {
    // The step was requested to stop and has stopped its programs: their errors are no fault of the client's.
    const isEnded = options.signal?.aborted === true;
    const { code, message } = isEnded
      ? failure("BUILD_ENGINE_FAILED", { said: "The build's pod was asked to end." })
      : error instanceof StepError
        ? error.failure
        : failure("BUILD_ENGINE_FAILED", {
            said: error instanceof BackendUnavailable ? error.message : undefined,
          });
    if (!(isEnded || error instanceof StepError || error instanceof BackendUnavailable)) {
      log.error(`Unexpected: ${error instanceof Error ? error.message : String(error)}`);
    }
    const redacted = new Redactor(await readSecrets(paths)).redact(message);
    log.error(redacted);
    return {
      result: { step, code, message: redacted },
      exitCode: isPassing(code) ? exitCodes.passing : exitCodes.failed,
    };
  } finally {
    log.end();
    // The last step needs none, and a step of the client's may have put a link in the file's place by then.
    if (step !== steps.at(-1)) {
      const file = workPaths(paths).logUsed;
      await mkdir(paths.work, { recursive: true });
      await rm(file, { recursive: true, force: true });
      await writeFile(file, String(log.used), { flag: "wx" });
    }
  }
}

/** A step of the build may have changed the file: invalid content counts as 0. */
async function readLogUsed(paths: Paths): Promise<number> {
  const work = await realpath(paths.work).catch(() => paths.work);
  const text = await readRegularFile(workPaths({ ...paths, work }).logUsed, 32).then(String, () => "0");
  return Math.max(0, Number(text) || 0);
}

/** Opens the backend that the tasks of the container `build` select. */
export function openBackend({
  tasks,
  paths,
  signal,
}: Pick<RunnerOptions, "tasks" | "paths" | "signal">): WithBackend {
  return async (log, use) => withBackend({ task: parseTask("build", tasks), log, paths, signal }, use);
}

async function executeStep(options: RunnerOptions, log: Log): Promise<Partial<StepResult>> {
  const { step, tasks: json, paths, signal, backend = openBackend(options) } = options;
  const { source, scratch } = workPaths(paths);
  const secrets = secretPaths(paths);
  switch (step) {
    case "fetch": {
      const task = parseTask(step, json);
      const files = {
        usernameFile: join(secrets.git, "username"),
        passwordFile: join(secrets.git, "password"),
      };
      const credential = existsSync(files.passwordFile) ? files : undefined;
      return fetchSource({ task, log, credential, target: source, scratch, signal });
    }
    case "plan":
      return planStep(parseTask(step, json), log, paths);
    case "build": {
      const task = parseTask(step, json);
      await backend(log, (started) => buildStep({ task, log, paths, backend: started, signal }));
      return {};
    }
    case "push":
      return pushStep({ task: parseTask(step, json), log, paths, signal });
  }
}

/** All secrets of the container: none of them may be printed. */
async function readSecrets(paths: Paths): Promise<{ values: string[]; credentials: string[] }> {
  const { git, envs, tools, registry } = secretPaths(paths);
  const [password, values, mirrors, config] = await Promise.all([
    readVariables(git),
    readVariables(envs),
    readVariables(tools),
    readVariables(registry),
  ]);
  return {
    values: Object.values(values),
    credentials: [
      ...[password.password ?? ""].map((text) => text.trim()).filter((text) => text !== ""),
      // Addresses of mirrors are not secret, passwords in them are.
      ...Object.values(mirrors).flatMap((text) => /\/\/[^/\s:@]*:([^/\s@]+)@/.exec(text)?.[1] ?? []),
      ...Object.values(config).flatMap(registryTokens),
    ],
  };
}

/** Strings of Docker's `config.json` that log in somewhere. */
function registryTokens(text: string): string[] {
  return [...text.matchAll(/"(?:auth|password|registrytoken|identitytoken)"\s*:\s*"([^"]+)"/g)].map(
    ([, token]) => token ?? "",
  );
}

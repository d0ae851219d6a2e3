/** Runs one step of a build: task in, log lines and a result out. */

import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { EngineUnavailable } from "./engine/engine.ts";
import { withEngine } from "./engine/open.ts";
import { buildStep } from "./engine/step.ts";
import { readVariables } from "./engine/variables.ts";
import { failure, isPassing } from "./failures/codes.ts";
import { StepError } from "./failures/stepError.ts";
import { fetchSource } from "./fetch/index.ts";
import { Redactor } from "./log/redact.ts";
import { Log } from "./log/writer.ts";
import { type Paths, secretPaths, workPaths } from "./paths.ts";
import { planStep } from "./plan/step.ts";
import { pushStep } from "./push.ts";
import { exitCodes, type StepResult } from "./result.ts";
import { parseTask, type Step } from "./task.ts";

export interface RunnerOptions {
  step: Step;
  /** The task's JSON. */
  task: string | undefined;
  paths: Paths;
  /** Takes a line of the log. */
  write(line: string): void;
  signal?: AbortSignal;
  now?: () => Date;
}

/** @returns the result, and the exit code that tells it */
export async function runStep(options: RunnerOptions): Promise<{ result: StepResult; exitCode: number }> {
  const { step, paths, write, now = () => new Date() } = options;
  const files = workPaths(paths);
  // A step of the build may have reached the file: nonsense counts as nothing.
  const used = Math.max(0, Number(await readFile(files.logUsed, "utf8").catch(() => "0")) || 0);
  const log = new Log({ step, redactor: new Redactor(await readSecrets(paths)), write, now, used });
  try {
    const told = await carryOut(options, log);
    return { result: { step, ...told }, exitCode: exitCodes.done };
  } catch (error) {
    const { code, message } =
      error instanceof StepError
        ? error.failure
        : failure("BUILD_ENGINE_FAILED", {
            said: error instanceof EngineUnavailable ? error.message : undefined,
          });
    if (!(error instanceof StepError || error instanceof EngineUnavailable)) {
      log.error(`Unexpected: ${error instanceof Error ? error.message : String(error)}`);
    }
    const redacted = new Redactor(await readSecrets(paths)).redact(message);
    log.error(redacted);
    return {
      result: { step, code, message: redacted },
      exitCode: isPassing(code) ? exitCodes.passing : exitCodes.failed,
    };
  } finally {
    await mkdir(paths.work, { recursive: true });
    await writeFile(files.logUsed, String(log.used));
  }
}

async function carryOut(
  { step, task: json, paths, signal }: RunnerOptions,
  log: Log,
): Promise<Partial<StepResult>> {
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
      await withEngine({ task, log, paths, signal }, (engine) =>
        buildStep({ task, log, paths, engine, signal }),
      );
      return {};
    }
    case "push":
      return pushStep({ task: parseTask(step, json), log, paths, signal });
  }
}

/** All that the container was given: nothing of it may be printed. */
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
      // Addresses of mirrors are no secrets, passwords in them are.
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

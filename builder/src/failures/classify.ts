/** Classifies why a step failed: by the step and its phase, then by exit code, then by its output. Pure. */

import type { Phase } from "../plan/input.ts";
import { type Failure, type FailureCode, failure } from "./codes.ts";
import { type TextRule, textRules } from "./text-rules.ts";

interface Common {
  timedOut?: boolean;
  /** End of the failing program's output, secrets redacted. */
  text: string;
}

/** A failed step of a build. */
export type FailedStep =
  | (Common & { step: "fetch"; provider: string; hasCredential: boolean; ref: string })
  | (Common & {
      step: "build";
      /** Undefined when it failed outside of any stage. */
      phase?: Phase;
      /** The command that failed. */
      command?: string;
      exitCode?: number;
      /** Whether the client set the command or wrote the Dockerfile. */
      own: boolean;
      /** Its timeout, as text. */
      limit?: string;
    })
  | (Common & { step: "push" });

export function classify(failed: FailedStep): Failure {
  switch (failed.step) {
    case "fetch":
      return classifyFetch(failed);
    case "build":
      return classifyBuild(failed);
    case "push":
      return failed.timedOut
        ? failure("PROJECT_PUBLISH_TIMEOUT")
        : failure("PROJECT_PUBLISH_FAILED", { said: mostRelevantLine(failed.text) });
  }
}

const github: Partial<Record<FailureCode, FailureCode>> = {
  GIT_COMMIT_UNAVAILABLE: "GITHUB_COMMIT_UNAVAILABLE",
  GIT_REPOSITORY_AUTH_FAILED: "GITHUB_REPOSITORY_AUTH_FAILED",
};

/** The provider's own code, where there is one. Pure. */
export function forProvider(code: FailureCode, provider: string): FailureCode {
  return (provider === "github" ? github[code] : undefined) ?? code;
}

function classifyFetch(failed: Extract<FailedStep, { step: "fetch" }>): Failure {
  const { provider, hasCredential, ref, text, timedOut } = failed;
  const code = timedOut
    ? "GIT_SERVER_UNAVAILABLE"
    : (firstMatch(textRules.fetch, text)?.code ?? "GIT_SERVER_UNAVAILABLE");
  const isRefused = code === "GIT_REPOSITORY_AUTH_FAILED";
  if (provider === "github" && isRefused && !hasCredential) {
    return failure("GITHUB_ACCESS_TOKEN_MISSING");
  }
  if (provider === "github" && isRefused && firstMatch(textRules.reauthorize, text) !== undefined) {
    return failure("GITHUB_REPOSITORY_REAUTHORIZATION_REQUIRED");
  }
  return failure(forProvider(code, provider), {
    ...(code === "GIT_COMMIT_UNAVAILABLE" ? { name: ref } : {}),
    said: timedOut ? "no answer in time" : mostRelevantLine(text),
  });
}

/** Exit code of a process that the kernel has killed, out of memory. */
const KILLED = 137;
/** Steps of the planner report by exit code what they did not find. */
const ownExits: Record<number, FailureCode> = { 80: "STATIC_OUTPUT_MISSING", 81: "JAVA_ARTIFACT_MISSING" };

function classifyBuild(failed: Extract<FailedStep, { step: "build" }>): Failure {
  const { timedOut, phase, exitCode, text, command, own, limit } = failed;
  const detail = { exitCode, said: mostRelevantLine(text) };
  if (timedOut) {
    return failure("BUILD_TIMEOUT", { name: limit });
  }
  const ownExit = phase === "package" && !own && exitCode !== undefined ? ownExits[exitCode] : undefined;
  if (ownExit !== undefined) {
    return failure(ownExit);
  }
  if (exitCode === undefined) {
    // No command ran: the error is the backend's.
    const { code, line = detail.said } = firstMatch(textRules.backend, text) ?? unclassified;
    // The base images of planned Dockerfiles are the platform's choice.
    return failure(code === "BASE_IMAGE_UNAVAILABLE" && !own ? "BUILD_ENGINE_FAILED" : code, { said: line });
  }
  if (exitCode === KILLED) {
    return failure("BUILD_OUT_OF_MEMORY");
  }
  const match = firstMatch(textRules.command, text);
  if (match !== undefined) {
    const script = match.code === "NODE_BUILD_SCRIPT_MISSING" ? { name: missingScript(text) } : {};
    return failure(match.code, { exitCode, said: match.line, ...script });
  }
  return failure(commandFailed(phase, own), { ...detail, name: command });
}

function commandFailed(phase: Phase | undefined, own: boolean): FailureCode {
  switch (phase) {
    case "install":
      return own ? "BUILD_COMMAND_FAILED" : "DEPENDENCY_INSTALL_FAILED";
    case "build":
    case "dockerfile":
      return "BUILD_COMMAND_FAILED";
    default:
      return "BUILD_FAILED_UNCLASSIFIED";
  }
}

const unclassified: { code: FailureCode; line?: string } = { code: "BUILD_FAILED_UNCLASSIFIED" };

/** The first matching rule, and the line that it matches. */
function firstMatch(
  rules: readonly TextRule[],
  text: string,
): { code: FailureCode; line?: string } | undefined {
  const rule = rules.find(({ pattern }) => pattern.test(text));
  const line = rule && text.split("\n").find((each) => rule.pattern.test(each));
  return rule && { code: rule.code, line: line?.trim().slice(0, MAX_SAID) };
}

const missingScript = (text: string): string | undefined =>
  /(?:Missing script: "?|Command "|Couldn't find a script named ")([\w:.@/-]{1,64})/.exec(text)?.[1];

/** Longest quoted line, in characters. */
const MAX_SAID = 300;

/** Lines that do not name the cause. */
const UNINFORMATIVE =
  /^(npm (error|ERR!)\s*$|npm (error|ERR!) A complete log|info Visit|\s*at |To see a list|npm notice)/;

/** The most informative line: the last one that names an error, otherwise the last. At most 300 characters. Pure. */
export function mostRelevantLine(text: string): string | undefined {
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !UNINFORMATIVE.test(line));
  const line =
    lines.findLast((each) =>
      /\b(error|fatal|failed|cannot|could not|unable|denied|not found)\b/i.test(each),
    ) ?? lines.at(-1);
  return line?.trim().slice(0, MAX_SAID);
}

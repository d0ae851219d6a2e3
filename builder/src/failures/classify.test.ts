import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { classify, type FailedStep, mostRelevantLine } from "./classify.ts";
import { type FailureCode, failure, failures, isPassing } from "./codes.ts";

const real = (name: string): string =>
  readFileSync(join(import.meta.dirname, "testdata", `${name}.txt`), "utf8");

type Build = Extract<FailedStep, { step: "build" }>;
const build = (more: Partial<Build>): Build => ({ step: "build", text: "", own: false, ...more });
const fetch = (text: string, more: Partial<Extract<FailedStep, { step: "fetch" }>> = {}): FailedStep => ({
  step: "fetch",
  provider: "forgejo",
  hasCredential: true,
  ref: "main",
  text,
  ...more,
});

describe("a tool's real output", () => {
  test.each<[string, FailureCode]>([
    ["npm-no-lockfile", "NPM_LOCKFILE_REQUIRED"],
    ["npm-out-of-sync", "NPM_LOCKFILE_OUT_OF_SYNC"],
    ["yarn-classic-out-of-sync", "NPM_LOCKFILE_OUT_OF_SYNC"],
    ["yarn-berry-out-of-sync", "NPM_LOCKFILE_OUT_OF_SYNC"],
    ["pnpm-out-of-sync", "NPM_LOCKFILE_OUT_OF_SYNC"],
    ["npm-no-version", "DEPENDENCY_INSTALL_FAILED"],
    ["pip-no-version", "DEPENDENCY_INSTALL_FAILED"],
    ["go-sum-missing", "DEPENDENCY_LOCKFILE_OUT_OF_SYNC"],
    ["uv-out-of-sync", "DEPENDENCY_LOCKFILE_OUT_OF_SYNC"],
    ["go-too-old", "DEPENDENCY_INSTALL_FAILED"],
  ])("%s while installing is %s", (name, code) => {
    const result = classify(build({ phase: "install", exitCode: 1, text: real(name) }));
    expect(result.code).toBe(code);
  });

  test.each<[string, FailureCode, string]>([
    ["npm-script-missing", "NODE_BUILD_SCRIPT_MISSING", "script `build`"],
    ["yarn-classic-script-missing", "NODE_BUILD_SCRIPT_MISSING", "script `build`"],
    ["pnpm-script-missing", "NODE_BUILD_SCRIPT_MISSING", "script `build`"],
    ["go-compile", "BUILD_COMMAND_FAILED", "go build ."],
  ])("%s while building is %s", (name, code, words) => {
    const result = classify(build({ phase: "build", exitCode: 1, command: "go build .", text: real(name) }));
    expect(result).toMatchObject({ code, message: expect.stringContaining(words) });
  });
});

describe("the phase decides before the text", () => {
  test.each<[string, FailedStep, FailureCode]>([
    [
      "the default install",
      build({ phase: "install", exitCode: 1, text: "boom" }),
      "DEPENDENCY_INSTALL_FAILED",
    ],
    ["the client's install", build({ phase: "install", exitCode: 1, own: true }), "BUILD_COMMAND_FAILED"],
    ["the build command", build({ phase: "build", exitCode: 2, text: "boom" }), "BUILD_COMMAND_FAILED"],
    [
      "a step of a Dockerfile",
      build({ phase: "dockerfile", exitCode: 1, own: true }),
      "BUILD_COMMAND_FAILED",
    ],
    ["pruning", build({ phase: "prune", exitCode: 1 }), "BUILD_FAILED_UNCLASSIFIED"],
    ["no site", build({ phase: "package", exitCode: 80 }), "STATIC_OUTPUT_MISSING"],
    ["no jar", build({ phase: "package", exitCode: 81 }), "JAVA_ARTIFACT_MISSING"],
    [
      "exit code 80 of a Dockerfile",
      build({ phase: "dockerfile", exitCode: 80, own: true }),
      "BUILD_COMMAND_FAILED",
    ],
    [
      "a killed command",
      build({ phase: "build", exitCode: 137, text: "npm error Missing script: x" }),
      "BUILD_OUT_OF_MEMORY",
    ],
    ["too long", build({ phase: "build", timedOut: true, text: real("npm-out-of-sync") }), "BUILD_TIMEOUT"],
    [
      "a full heap",
      build({ phase: "build", exitCode: 134, text: "FATAL ERROR: JavaScript heap out of memory" }),
      "BUILD_OUT_OF_MEMORY",
    ],
    [
      "a full disk",
      build({ phase: "install", exitCode: 1, text: "npm error ENOSPC: no space left on device, write" }),
      "BUILD_DISK_FULL",
    ],
    ["npm's words at git", fetch(real("npm-out-of-sync")), "GIT_SERVER_UNAVAILABLE"],
    [
      "git's words in a build",
      build({ phase: "build", exitCode: 128, text: "fatal: Authentication failed for 'https://x/'" }),
      "BUILD_COMMAND_FAILED",
    ],
    ["a push that fails", { step: "push", text: "unexpected status code 507" }, "PROJECT_PUBLISH_FAILED"],
    ["a push that hangs", { step: "push", text: "", timedOut: true }, "PROJECT_PUBLISH_TIMEOUT"],
  ])("%s", (_, failed, code) => {
    expect(classify(failed).code).toBe(code);
  });
});

describe("the backend's error, where no command ran", () => {
  test.each<[string, string, boolean, FailureCode]>([
    [
      "a Dockerfile that cannot be read",
      "dockerfile parse error on line 3: unknown instruction: FORM",
      true,
      "DOCKERFILE_INVALID",
    ],
    [
      "an image that is not there",
      "base.example/x:1: failed to resolve source metadata for base.example/x:1: not found",
      true,
      "BASE_IMAGE_UNAVAILABLE",
    ],
    [
      "an image of ours that is not there",
      "failed to resolve source metadata for base/node:24: not found",
      false,
      "BUILD_ENGINE_FAILED",
    ],
    [
      "a file that is not there",
      'failed to compute cache key: "/app.jar": not found',
      true,
      "BUILD_FAILED_UNCLASSIFIED",
    ],
    [
      "a backend that has stopped",
      "rpc error: code = Unavailable desc = error reading from server: EOF",
      false,
      "BUILD_ENGINE_FAILED",
    ],
    ["a full disk", "failed to copy: write /x: no space left on device", false, "BUILD_DISK_FULL"],
  ])("%s", (_, text, own, code) => {
    expect(classify(build({ text, own, phase: own ? "dockerfile" : undefined })).code).toBe(code);
  });
});

describe("GitHub's codes", () => {
  const notFound = "remote: Repository not found.\nfatal: repository 'https://github.com/a/b/' not found";
  const sso =
    "remote: The 'acme' organization has enabled or enforced SAML SSO.\nremote: To access this repository, you must re-authorize the OAuth Application 'x'.\nfatal: unable to access 'https://github.com/a/b/': The requested URL returned error: 403";
  test.each<[string, string, boolean, FailureCode, FailureCode]>([
    [
      "a repository that is not shown",
      notFound,
      true,
      "GITHUB_REPOSITORY_AUTH_FAILED",
      "GIT_REPOSITORY_AUTH_FAILED",
    ],
    [
      "no token",
      "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
      false,
      "GITHUB_ACCESS_TOKEN_MISSING",
      "GIT_REPOSITORY_AUTH_FAILED",
    ],
    ["single sign-on", sso, true, "GITHUB_REPOSITORY_REAUTHORIZATION_REQUIRED", "GIT_REPOSITORY_AUTH_FAILED"],
    [
      "a commit that is gone",
      "fatal: remote error: upload-pack: not our ref 0123",
      true,
      "GITHUB_COMMIT_UNAVAILABLE",
      "GIT_COMMIT_UNAVAILABLE",
    ],
  ])("%s", (_, text, hasCredential, atGithub, elsewhere) => {
    expect(classify(fetch(text, { provider: "github", hasCredential })).code).toBe(atGithub);
    expect(classify(fetch(text, { hasCredential })).code).toBe(elsewhere);
  });
});

describe("every code", () => {
  test.each(Object.keys(failures) as FailureCode[])("%s says what to do", (code) => {
    const { message } = failure(code, { name: "x", exitCode: 2, said: "boom" });
    expect(message.length).toBeGreaterThan(50);
    expect(message).not.toMatch(/undefined|null/);
    expect(failure(code).message).not.toMatch(/undefined|null/);
  });

  test("that another try may cure is marked", () => {
    expect(isPassing("GIT_SERVER_UNAVAILABLE")).toBe(true);
    expect(isPassing("BUILD_COMMAND_FAILED")).toBe(false);
  });

  test("has a message that fits into a Build's status", () => {
    expect(failure("BUILD_COMMAND_FAILED", { name: "x".repeat(3000) }).message).toHaveLength(1024);
  });
});

test("the words that are quoted name the cause", () => {
  expect(mostRelevantLine(real("npm-no-version"))).toMatch(
    /package version that doesn't exist|ETARGET|No matching version/,
  );
  expect(mostRelevantLine(real("pip-no-version"))).toContain("No matching distribution found");
  expect(mostRelevantLine("\n\n")).toBeUndefined();
  expect(mostRelevantLine(`error: ${"x".repeat(1000)}`)).toHaveLength(300);
});

/** Error messages of programs, in the versions that are named; each is in testdata/ or produced by a test. */

import type { FailureCode } from "./codes.ts";

export interface TextRule {
  code: FailureCode;
  pattern: RegExp;
}

const fetch: TextRule[] = [
  // git 2.39 over HTTPS; the text after `remote:` is the server's.
  {
    code: "GIT_CERTIFICATE_INVALID",
    pattern: /SSL certificate problem|server certificate verification failed|SSL: no alternative certificate/,
  },
  {
    code: "GIT_REPOSITORY_AUTH_FAILED",
    pattern:
      /Authentication failed for|could not read (Username|Password) for|requested URL returned error: 40[134]|^remote: .*(Repository not found|denied)|fatal: repository '.*' not found|re-authorize/im,
  },
  {
    code: "GIT_COMMIT_UNAVAILABLE",
    pattern:
      /couldn't find remote ref|invalid refspec|not our ref|unadvertised object|bad object|did not contain the commit/i,
  },
  { code: "GIT_REPOSITORY_TOO_LARGE", pattern: /File too large|signal 25|SIGXFSZ/i },
];

/** GitHub's messages where the organization's access, not the token, is missing. */
const reauthorize: TextRule[] = [
  {
    code: "GITHUB_REPOSITORY_REAUTHORIZATION_REQUIRED",
    pattern:
      /re-?authorize|SAML SSO|has been suspended|installation.*(suspended|access)|not accessible by integration/i,
  },
];

const backend: TextRule[] = [
  { code: "BUILD_DISK_FULL", pattern: /no space left on device|disk quota exceeded/i },
  {
    code: "DOCKERFILE_INVALID",
    pattern:
      /dockerfile parse error|unknown instruction|failed to parse stage name|no build stage in current context|file with no instructions|syntax error/i,
  },
  {
    code: "BASE_IMAGE_UNAVAILABLE",
    pattern:
      /failed to resolve source metadata|pull access denied|manifest unknown|failed to (do request|authorize)|initializing source docker:/i,
  },
  {
    code: "BUILD_ENGINE_FAILED",
    pattern:
      /code = Unavailable|error reading from server: EOF|failed to (dial|connect)|connection (refused|reset)|listing workers/i,
  },
];

const command: TextRule[] = [
  { code: "BUILD_DISK_FULL", pattern: /no space left on device|\bENOSPC\b|disk quota exceeded/i },
  // V8 and javac.
  {
    code: "BUILD_OUT_OF_MEMORY",
    pattern: /JavaScript heap out of memory|java\.lang\.OutOfMemoryError|\bENOMEM\b|^Killed$/m,
  },
  // npm 12, yarn 1.22 and 4.18, pnpm 10.
  {
    code: "NPM_LOCKFILE_REQUIRED",
    pattern: /`?npm ci`? command can only install with an existing package-lock|ERR_PNPM_NO_LOCKFILE/,
  },
  {
    code: "NPM_LOCKFILE_OUT_OF_SYNC",
    pattern:
      /`npm ci` can only install packages when your package\.json and|Your lockfile needs to be updated|ERR_PNPM_(OUTDATED_LOCKFILE|LOCKFILE_CONFIG_MISMATCH)|YN0028: .*lockfile would have been modified/,
  },
  {
    code: "NODE_BUILD_SCRIPT_MISSING",
    pattern: /Missing script: |^error Command "[^"]+" not found|Couldn't find a script named/m,
  },
  // uv, poetry 2, pipenv, go 1.26, bundler 2, composer 2.
  {
    code: "DEPENDENCY_LOCKFILE_OUT_OF_SYNC",
    pattern:
      /lockfile at `uv\.lock` needs to be updated|pyproject\.toml changed significantly since poetry\.lock|Pipfile\.lock \(.*\) out of date|missing go\.sum entry|updates to go\.mod needed|gemspecs? for .* changed|lockfile (does not|can't|cannot).*(satisfy|updated)|lock file is not up to date with the latest changes in composer\.json/i,
  },
];

export const textRules = { fetch, reauthorize, backend, command } as const;

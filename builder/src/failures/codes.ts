/** Why a build failed: every code with its message for the owner of the project. */

/** Names that a message may mention. */
export interface FailureDetail {
  /** Folder, file, script, runtime or version concerned. */
  name?: string;
  /** Exit code of the command. */
  exitCode?: number;
  /** The last error of the failing program. */
  said?: string;
}

interface Cause {
  message(detail: FailureDetail): string;
  /** A retry may succeed without any change: a transient failure, or one of the platform. */
  passing?: true;
}

const named = (name: string | undefined, otherwise: string): string =>
  name === undefined ? otherwise : `\`${name}\``;
const exit = ({ exitCode }: FailureDetail): string =>
  exitCode === undefined ? "failed" : `failed with exit code ${exitCode}`;
const said = ({ said }: FailureDetail): string => (said === undefined ? "" : ` It said: ${said}`);

/** Failures of a Git server, the same for every provider. */
const git = {
  commitUnavailable: ({ name }: FailureDetail) =>
    `The repository has no commit, branch or tag ${named(name, "as asked for")} any more: it was removed or rewritten. Push again, or choose another commit.`,
  authFailed: () =>
    "The Git server refused the connection's credential for this repository, or does not show it the repository. Check that the repository exists and that the credential may read it, then replace the credential of the connection.",
};

export const failures = {
  NPM_LOCKFILE_REQUIRED: {
    message: () =>
      "package.json has no lockfile beside it, so its dependencies cannot be installed exactly. Run `npm install` in that folder and commit package-lock.json (or commit yarn.lock or pnpm-lock.yaml), or set a pre-build command that installs them.",
  },
  NPM_LOCKFILE_OUT_OF_SYNC: {
    message: (detail) =>
      `package.json and its lockfile do not agree. Run your package manager's install (\`npm install\`, \`yarn install\` or \`pnpm install\`) in that folder and commit the changed lockfile.${said(detail)}`,
  },
  NODE_BUILD_SCRIPT_MISSING: {
    message: ({ name }) =>
      `package.json has no script ${named(name, "`build`")} for the build to run. Add it to "scripts", or change the build command.`,
  },
  BUILD_COMMAND_FAILED: {
    message: (detail) =>
      `The command ${named(detail.name, "of the build")} ${exit(detail)}. Read the log above its end, try the command on a fresh clone, and push the correction.${said(detail)}`,
  },
  BUILD_FAILED_UNCLASSIFIED: {
    message: (detail) =>
      `The build failed for a reason that is not known more closely. Read the end of the log.${said(detail)}`,
  },
  ROOT_DIRECTORY_NOT_FOUND: {
    message: ({ name }) =>
      `The folder ${named(name, "to build")} is not in the repository at this commit. Correct the build root directory (context_path), or commit the folder.`,
  },
  ROOT_DIRECTORY_INVALID: {
    message: ({ name }) =>
      `The path ${named(name, "to build")} is no folder inside the repository: it is a file, or a link that leads out of it. Set the build root directory (context_path) to a folder of the repository.`,
  },
  GITHUB_COMMIT_UNAVAILABLE: { message: git.commitUnavailable },
  GITHUB_REPOSITORY_AUTH_FAILED: { message: git.authFailed },
  GITHUB_REPOSITORY_REAUTHORIZATION_REQUIRED: {
    message: () =>
      "GitHub wants the organization's access to this repository confirmed again (single sign-on, a suspended or narrowed installation). Connect the GitHub account again and grant it this repository.",
  },
  GITHUB_ACCESS_TOKEN_MISSING: {
    message: () =>
      "There is no GitHub access token for this repository. Connect a GitHub account to the organization, then deploy again.",
  },
  PROJECT_PUBLISH_TIMEOUT: {
    message: () =>
      "The image was built but could not be published in time. The version before it, if there is one, still serves. Deploy again.",
  },
  PROJECT_PUBLISH_FAILED: {
    message: (detail) =>
      `The image was built but could not be published. The version before it, if there is one, still serves. Deploy again; should it fail again, report it to the platform's operator.${said(detail)}`,
  },
  GIT_COMMIT_UNAVAILABLE: { message: git.commitUnavailable },
  GIT_REPOSITORY_AUTH_FAILED: { message: git.authFailed },
  GIT_REPOSITORY_TOO_LARGE: {
    message: ({ name }) =>
      `The repository is larger than a build may fetch${name === undefined ? "" : ` (${name})`}. Remove large files from it, or keep them outside.`,
  },
  GIT_SUBMODULE_UNAVAILABLE: {
    message: (detail) =>
      `The submodule ${named(detail.name, "of the repository")} cannot be fetched. Builds fetch submodules without a credential, from the repository's own server alone: make it public there, or commit its files, or install it as a dependency.${said(detail)}`,
  },
  GIT_LFS_OBJECT_UNAVAILABLE: {
    message: (detail) =>
      `The large file ${named(detail.name, "of the repository")} (Git LFS) is not to be had from the repository's own server. Push it with \`git lfs push --all origin\`, or keep it elsewhere.${said(detail)}`,
  },
  GIT_CERTIFICATE_INVALID: {
    message: () =>
      "The Git server's certificate is not trusted. Give the server a certificate of a public authority, or ask the platform's operator to trust its own.",
  },
  GIT_SERVER_UNAVAILABLE: {
    message: (detail) =>
      `The Git server could not be reached or failed. Deploy again once it answers.${said(detail)}`,
    passing: true,
  },
  BUILD_SETTINGS_INVALID: {
    message: ({ name }) =>
      `The build setting ${named(name, "")} holds a line break, a control character or too much. Write the command on one line, or put it into a script of the repository.`,
  },
  RUNTIME_NOT_DETECTED: {
    message: () =>
      "The runtime cannot be detected: no package.json, requirements.txt, pyproject.toml, go.mod, composer.json, Gemfile, pom.xml, index.html or Dockerfile. Set the runtime, or the build root directory (context_path).",
  },
  RUNTIME_UNSUPPORTED: {
    message: ({ name }) =>
      `The runtime ${named(name, "asked for")} cannot be built here. Choose one of the runtime catalog.`,
  },
  RUNTIME_VERSION_UNSUPPORTED: {
    message: ({ name }) =>
      `The version ${named(name, "asked for")} cannot be built. Choose one of the runtime catalog.`,
  },
  START_COMMAND_REQUIRED: {
    message: () =>
      "The start command cannot be detected. Set the start command, add a start script to package.json, or commit a Procfile with a line `web: …`.",
  },
  DEPENDENCY_MANIFEST_MISSING: {
    message: ({ name }) =>
      `The folder has no ${named(name, "manifest")}, which builds for this runtime begin with. Commit it, or correct the build root directory (context_path) or the runtime.`,
  },
  DEPENDENCY_MANIFEST_INVALID: {
    message: (detail) =>
      `${named(detail.name, "The manifest")} cannot be read. Correct it and push again.${said(detail)}`,
  },
  DEPENDENCY_LOCKFILE_REQUIRED: {
    message: ({ name }) =>
      `The lockfile ${named(name, "of the dependencies")} is missing, so they cannot be installed exactly. Make it with your package manager and commit it.`,
  },
  DEPENDENCY_LOCKFILE_OUT_OF_SYNC: {
    message: (detail) =>
      `The manifest of the dependencies and its lockfile do not agree. Bring the lockfile up to date with your package manager and commit it.${said(detail)}`,
  },
  DEPENDENCY_INSTALL_FAILED: {
    message: (detail) =>
      `Installing the dependencies ${exit(detail)}. Check that each of them exists in the version asked for and can be reached.${said(detail)}`,
  },
  GO_MAIN_PACKAGE_REQUIRED: {
    message: ({ name }) =>
      `The Go package of the program cannot be detected${name === undefined ? "" : ` (${name})`}. Put it into the root or into one folder of cmd/, or set the build command.`,
  },
  STATIC_OUTPUT_MISSING: {
    message: () =>
      "The build made no folder with an index.html in it (looked for dist, build, out, public and _site). Let the build write to one of them.",
  },
  JAVA_ARTIFACT_MISSING: {
    message: () =>
      "The build made no single runnable .jar (looked in target/ and build/libs/). Package the application as one jar, or set the start command.",
  },
  DOCKERFILE_NOT_FOUND: {
    message: ({ name }) =>
      `There is no Dockerfile at ${named(name, "the path asked for")} inside the build root directory. Correct dockerfile_path, or commit the file.`,
  },
  DOCKERFILE_INVALID: {
    message: (detail) => `The Dockerfile cannot be read. Correct it and push again.${said(detail)}`,
  },
  BASE_IMAGE_UNAVAILABLE: {
    message: (detail) =>
      `An image that the build begins with could not be pulled. Check the FROM lines: the image must exist and be readable without a login.${said(detail)}`,
  },
  BUILD_OUT_OF_MEMORY: {
    message: () =>
      "The build used more memory than builds may. Let it do less at once (fewer workers, smaller bundles), or limit its heap.",
  },
  BUILD_DISK_FULL: {
    message: () =>
      "The build used more disk than builds may. Keep large files and caches out of the image, or out of the repository.",
  },
  BUILD_TIMEOUT: {
    message: ({ name }) =>
      `The build took longer than builds may${name === undefined ? "" : ` (${name})`}. Look in the log for the step that hangs or waits for input.`,
  },
  BUILD_IMAGE_TOO_LARGE: {
    message: ({ name }) =>
      `The image is larger than images may be${name === undefined ? "" : ` (${name})`}. Leave build tools and large files out of it.`,
  },
  BUILD_ENGINE_FAILED: {
    message: (detail) => `The platform could not run the build. Deploy again.${said(detail)}`,
    passing: true,
  },
} as const satisfies Record<string, Cause>;

export type FailureCode = keyof typeof failures;

/** A failure as it is reported: the code for programs, the message for people. */
export interface Failure {
  code: FailureCode;
  /** What happened and what to do, at most 1,024 characters. */
  message: string;
}

/** Longest message that a Build's status accepts. */
const MAX_MESSAGE = 1024;

/** Pure. */
export function failure(code: FailureCode, detail: FailureDetail = {}): Failure {
  const cause: Cause = failures[code];
  return { code, message: cause.message(detail).slice(0, MAX_MESSAGE) };
}

/** Whether a retry of the same build may succeed. */
export function isPassing(code: FailureCode): boolean {
  const cause: Cause = failures[code];
  return cause.passing === true;
}

/** Fails a step, and with it the build, with a code. */
export class StepError extends Error {
  override name = "StepError";
  readonly failure: Failure;

  constructor(cause: Failure) {
    super(cause.message);
    this.failure = cause;
  }

  static of(code: FailureCode, detail?: FailureDetail): StepError {
    return new StepError(failure(code, detail));
  }
}

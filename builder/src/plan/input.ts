import type { BaseImages, RuntimeCatalog } from "../catalog.ts";
import { type Failure, type FailureCode, type FailureDetail, failure } from "../failures/codes.ts";

/** How to build, as the client has set it. Null and undefined are the same: the planner decides. */
export interface BuildSettings {
  runtime?: string | null;
  version?: string | null;
  startCommand?: string | null;
  preBuildCommand?: string | null;
  buildCommand?: string | null;
  /** Relative to the build root. */
  dockerfilePath?: string | null;
}

export interface PlanInput {
  settings: BuildSettings;
  /** Files of the build root, relative, with `/`. */
  files: readonly string[];
  /** Contents of those that `isWanted` names. */
  texts: Readonly<Record<string, string>>;
  catalog: RuntimeCatalog;
  images: BaseImages;
  /** Port that the application gets in `PORT`. */
  port: number;
}

/** What a stage of the Dockerfile does; failures are classified by it. */
export const phases = ["install", "build", "prune", "package", "dockerfile"] as const;
export type Phase = (typeof phases)[number];

export interface BuildPlan {
  runtime: string;
  version: string | null;
  /** Text of the Dockerfile, for the build root as context. */
  dockerfile: string;
  /** Text of the ignore file; null leaves it to the repository's own. */
  dockerignore: string | null;
  /** The phase of each named stage; the last stage has no name and is `package`. */
  stages: Record<string, Phase>;
  /** What its steps run, by `<stage> <steps after it>`. */
  commands: Record<string, string>;
  port: number;
  /** Command of the image, null when the Dockerfile's own applies. */
  start: string[] | null;
  /** What decided, one sentence each. */
  detected: string[];
  /** What the people whose build it is should know. */
  notes: string[];
}

/** Ends planning: nothing can be built. */
export class PlanError extends Error {
  override name = "PlanError";
  readonly failure: Failure;

  constructor(code: FailureCode, detail: FailureDetail = {}) {
    const planFailure = failure(code, detail);
    super(planFailure.message);
    this.failure = planFailure;
  }
}

/** The build root, as far as the planner knows it. */
export class Tree {
  readonly #files: Set<string>;
  readonly #texts: Readonly<Record<string, string>>;

  constructor({ files, texts }: Pick<PlanInput, "files" | "texts">) {
    this.#files = new Set(files);
    this.#texts = texts;
  }

  has(path: string): boolean {
    return this.#files.has(path);
  }

  /** Whether any file is below the folder. */
  hasFolder(folder: string): boolean {
    return this.matching((path) => path.startsWith(`${folder}/`)).length > 0;
  }

  /** In alphabetical order. */
  matching(test: (path: string) => boolean): string[] {
    return [...this.#files].filter(test).toSorted();
  }

  /** The first of the files that exists. */
  first(...paths: string[]): string | undefined {
    return paths.find((path) => this.has(path));
  }

  /** Contents of a file, empty when it is missing or was too large to read. */
  text(path: string): string {
    return Object.hasOwn(this.#texts, path) ? (this.#texts[path] ?? "") : "";
  }
}

const ROOT_FILES = new Set([
  ".dockerignore",
  ".node-version",
  ".nvmrc",
  ".python-version",
  ".ruby-version",
  ".yarnrc.yml",
  "Gemfile",
  "Gemfile.lock",
  "Pipfile",
  "Procfile",
  "build.gradle",
  "build.gradle.kts",
  "composer.json",
  "go.mod",
  "manage.py",
  "package.json",
  "pnpm-lock.yaml",
  "pom.xml",
  "pyproject.toml",
  "requirements.txt",
  "yarn.lock",
]);

/** Whether the planner reads the file. Pure. @param dockerfilePath of the settings */
export function isWanted(path: string, dockerfilePath?: string | null): boolean {
  const dockerfile = dockerfilePath ?? "Dockerfile";
  return (
    ROOT_FILES.has(path) ||
    path === dockerfile ||
    path === `${dockerfile}.dockerignore` ||
    /^[^/]+\.go$/.test(path) ||
    /^cmd\/[^/]+\/[^/]+\.go$/.test(path) ||
    /^[^/]+\/wsgi\.py$/.test(path)
  );
}

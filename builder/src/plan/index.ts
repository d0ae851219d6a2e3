/** Plans a build: settings and files in, a Dockerfile or the reason why there is none out. Pure. */

import { ONLY_VERSION, type Runtime, type RuntimeId } from "../catalog.ts";
import type { Failure } from "../failures/codes.ts";
import { checkSettings } from "./command.ts";
import type { Context, Planned } from "./context.ts";
import { detectRuntime, detectVersion, findRuntime } from "./detect.ts";
import { commandPlaces, dockerfileText, planOwnDockerfile, stagePhases } from "./dockerfile.ts";
import { planGo } from "./go.ts";
import { type BuildPlan, PlanError, type PlanInput, Tree } from "./input.ts";
import { planJava } from "./java.ts";
import { planNode } from "./node.ts";
import { planPhp } from "./php.ts";
import { planPython } from "./python.ts";
import { planRuby } from "./ruby.ts";
import { planStatic } from "./static.ts";

const planners: Record<Exclude<RuntimeId, "dockerfile">, (context: Context) => Planned> = {
  node: planNode,
  python: planPython,
  go: planGo,
  php: planPhp,
  ruby: planRuby,
  java: planJava,
  static: planStatic,
};

/** What no build needs, before what the repository leaves out itself. */
const IGNORED = [".git", "**/node_modules", "**/.venv", "**/__pycache__", "target", "vendor/bundle"];

export type PlanResult = { ok: true; plan: BuildPlan } | { ok: false; failure: Failure };

/** Plans a build. What cannot be built is a failure with its code, never an exception. Pure. */
export function planBuild(input: PlanInput): PlanResult {
  try {
    return { ok: true, plan: plan(input) };
  } catch (error) {
    if (error instanceof PlanError) {
      return { ok: false, failure: error.failure };
    }
    throw error;
  }
}

function plan(input: PlanInput): BuildPlan {
  const { settings, port } = input;
  checkSettings(settings);
  const tree = new Tree(input);
  const detected: string[] = [];
  const notes: string[] = [];
  const id = chooseRuntime(input, tree, detected);
  if (id === "dockerfile") {
    findRuntime(input.catalog, id);
    return planOwnDockerfile(input, tree);
  }
  const runtime = findRuntime(input.catalog, id);
  const version = chooseVersion(input, tree, runtime, detected);
  const context: Context = {
    tree,
    commands: {
      start: settings.startCommand ?? undefined,
      preBuild: settings.preBuildCommand ?? undefined,
      build: settings.buildCommand ?? undefined,
    },
    version: version ?? ONLY_VERSION,
    image: imageOf(input, runtime, version),
    otherImage: (other) => {
      const second = findRuntime(input.catalog, other);
      return imageOf(input, second, chooseOtherVersion(input, tree, second));
    },
    port,
    detected: (sentence) => detected.push(sentence),
    note: (sentence) => notes.push(sentence),
  };
  const { stages, start } = planners[id](context);
  return {
    runtime: id,
    version: version ?? null,
    dockerfile: dockerfileText(
      [runtime.name, version].filter((word) => word !== undefined).join(" "),
      stages,
    ),
    dockerignore: ignoreText(id, tree),
    stages: stagePhases(stages),
    commands: commandPlaces(stages),
    port,
    start,
    detected,
    notes,
  };
}

function chooseRuntime({ settings }: PlanInput, tree: Tree, detected: string[]): RuntimeId {
  if (settings.dockerfilePath != null) {
    return "dockerfile";
  }
  if (settings.runtime != null) {
    return settings.runtime as RuntimeId;
  }
  const { runtime, because } = detectRuntime(tree, settings.startCommand != null);
  detected.push(`The runtime is ${runtime}: ${because} says so.`);
  return runtime;
}

/** Versions that there are images for. */
const offered = ({ images }: PlanInput, { id, versions }: Runtime): string[] =>
  versions.filter((version) => images[id]?.[version] !== undefined);

/** The version of the spec, else the one that the repository requests, else the default; undefined for runtimes without versions. */
function chooseVersion(
  input: PlanInput,
  tree: Tree,
  runtime: Runtime,
  detected: string[],
): string | undefined {
  const requested = input.settings.version;
  if (requested != null) {
    if (!runtime.versions.includes(requested)) {
      throw new PlanError("RUNTIME_VERSION_UNSUPPORTED", { name: `${runtime.id} ${requested}` });
    }
    return requested;
  }
  const found = chooseOtherVersion(input, tree, runtime);
  if (found !== undefined && found !== runtime.default_version) {
    detected.push(`The version is ${found}: the repository asks for it.`);
  }
  return found;
}

function chooseOtherVersion(input: PlanInput, tree: Tree, runtime: Runtime): string | undefined {
  const versions = offered(input, runtime);
  const preferred = versions.find((version) => version === runtime.default_version) ?? versions[0];
  return detectVersion(tree, runtime.id, versions, preferred) ?? preferred ?? runtime.default_version;
}

function imageOf({ images }: PlanInput, runtime: Runtime, version: string | undefined): Context["image"] {
  const image = images[runtime.id]?.[version ?? ONLY_VERSION];
  if (image === undefined) {
    throw version === undefined || images[runtime.id] === undefined
      ? new PlanError("RUNTIME_UNSUPPORTED", { name: runtime.id })
      : new PlanError("RUNTIME_VERSION_UNSUPPORTED", { name: `${runtime.id} ${version}` });
  }
  return image;
}

/** A folder `target` of another language than Java is the application's own. */
function ignoreText(runtime: RuntimeId, tree: Tree): string {
  const ignored = IGNORED.filter((pattern) => pattern !== "target" || runtime === "java");
  return `${[...ignored, tree.text(".dockerignore").trim()].filter((line) => line !== "").join("\n")}\n`;
}

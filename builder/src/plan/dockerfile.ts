/** The Dockerfile's text. Only what BuildKit and buildah from 1.28 on accept: no here-documents, no `env=` of secrets, no `COPY --link`. */

import { execForm, startWords } from "./command.ts";
import { type BuildPlan, type Phase, PlanError, type PlanInput, type Tree } from "./input.ts";

/** Who runs in a finished image. A number, so that the cluster can check that it is not root. */
export const APPLICATION_USER = "1000:1000";
/** Where the application is, while it is built and when it runs. */
export const APPLICATION_FOLDER = "/app";

/** Secrets that the runner hands to every step: a shell script of exports, and the authorities that tools trust. */
export const ENV_SECRET = "slipway-env";
export const CA_SECRET = "slipway-ca";
/** Changes whenever a variable of the project does: no step is then taken from the cache. */
export const ENV_REVISION_ARG = "SLIPWAY_ENV_REVISION";

/** A cache that outlives the build, at a path of the build stage. */
export interface Cache {
  id: string;
  target: string;
}

export interface Stage {
  /** The image, or the stage, that it begins with. */
  from: string;
  /** Absent for the last stage, which is the image. */
  name?: string;
  phase: Phase;
  lines: string[];
}

const prelude = `[ ! -r /run/secrets/${ENV_SECRET} ] || . /run/secrets/${ENV_SECRET}; exec /bin/sh -c "$1"`;

/**
 * One step. The command is an argument of its own: nothing in it can end the line, or meet what the platform puts before it.
 * Variables of the project exist in this step alone, neither in the layer nor in the history. Pure.
 */
export function run(command: string, caches: readonly Cache[] = []): string {
  const mounts = [
    ...caches.map(({ id, target }) => `--mount=type=cache,id=${id},target=${target}`),
    ...[ENV_SECRET, CA_SECRET].map((id) => `--mount=type=secret,id=${id}`),
  ];
  return `RUN ${mounts.join(" ")} ${execForm(["/bin/sh", "-c", prelude, "sh", command])}`;
}

/** The command of a step that `run` made, as people wrote it; undefined when the step is none of these. Pure. */
export function commandOf(step: string): string | undefined {
  const start = step.indexOf('["/bin/sh","-c","[ ! -r /run/secrets/');
  if (!step.includes("RUN ") || start === -1) {
    return undefined;
  }
  try {
    const words: unknown = JSON.parse(step.slice(start));
    return Array.isArray(words) && typeof words[4] === "string" ? words[4] : undefined;
  } catch {
    return undefined;
  }
}

/** Instructions that builders count as steps of a stage. */
const COUNTED = /^(RUN|COPY|ADD|WORKDIR) /;

/**
 * Commands by their place: `<stage> <steps after it>`. Builders name a step by its stage and its number, and quote the
 * rest of it as they like. Pure.
 */
export function commandPlaces(stages: readonly Stage[]): Record<string, string> {
  const places = stages.flatMap(({ name, lines }) => {
    const counted = lines.filter((line) => COUNTED.test(line)).toReversed();
    return counted.flatMap((line, after) => {
      const command = commandOf(line);
      return command === undefined || name === undefined ? [] : [[`${name} ${after}`, command] as const];
    });
  });
  return Object.fromEntries(places);
}

/** First lines of a stage that installs or compiles: as root of the build, which is nobody outside of it. */
export function buildStage(env: Record<string, string> = {}): string[] {
  return ["USER 0:0", `WORKDIR ${APPLICATION_FOLDER}`, `ARG ${ENV_REVISION_ARG}`, ...envLines(env)];
}

/** `ENV` lines; values are the platform's own words. */
export function envLines(env: Record<string, string>): string[] {
  return Object.entries(env).map(([name, value]) => `ENV ${name}="${value}"`);
}

/** Lines of the image that runs: the application's files are its own user's. */
export function imageLines(options: {
  from: string;
  /** Sources in that stage, by where they go. */
  copies?: Record<string, string>;
  env?: Record<string, string>;
  port: number;
  start: readonly string[];
}): string[] {
  const { from, copies = { [APPLICATION_FOLDER]: "./" }, env = {}, port, start } = options;
  return [
    // A user without an entry in /etc/passwd has no home either.
    ...envLines({ HOME: "/tmp", PORT: String(port), ...env }),
    `WORKDIR ${APPLICATION_FOLDER}`,
    ...Object.entries(copies).map(
      ([source, target]) => `COPY --from=${from} --chown=${APPLICATION_USER} ${source} ${target}`,
    ),
    `USER ${APPLICATION_USER}`,
    `EXPOSE ${port}`,
    `CMD ${execForm(start)}`,
  ];
}

/** The whole text. Pure. */
export function dockerfileText(title: string, stages: readonly Stage[]): string {
  const blocks = stages.map(({ from, name, lines }) =>
    [`FROM ${from}${name === undefined ? "" : ` AS ${name}`}`, ...lines].join("\n"),
  );
  return `# ${title}\n${blocks.join("\n\n")}\n`;
}

/** Phases of the named stages. */
export function stagePhases(stages: readonly Stage[]): Record<string, Phase> {
  return Object.fromEntries(stages.flatMap(({ name, phase }) => (name === undefined ? [] : [[name, phase]])));
}

/** The repository's own Dockerfile, as it is: a start command alone is added to its end. */
export function planOwnDockerfile({ settings, port }: PlanInput, tree: Tree): BuildPlan {
  const path = settings.dockerfilePath ?? "Dockerfile";
  if (!tree.has(path)) {
    throw new PlanError("DOCKERFILE_NOT_FOUND", { name: path });
  }
  const text = tree.text(path);
  if (!/^\s*FROM\s/im.test(text)) {
    throw new PlanError("DOCKERFILE_INVALID", { said: "no FROM line" });
  }
  const start = settings.startCommand == null ? null : startWords(settings.startCommand);
  const ignored = [
    ["pre_build_command", settings.preBuildCommand],
    ["build_command", settings.buildCommand],
  ].flatMap(([name, value]) => (value == null ? [] : [name]));
  return {
    runtime: "dockerfile",
    version: null,
    dockerfile: start === null ? text : `${text.trimEnd()}\n\nCMD ${execForm(start)}\n`,
    dockerignore: tree.has(`${path}.dockerignore`) ? tree.text(`${path}.dockerignore`) : null,
    stages: {},
    commands: {},
    port,
    start,
    detected: [`The image is made from ${path}.`],
    notes: ignored.map((name) => `${name} is not used: the Dockerfile says how to build.`),
  };
}

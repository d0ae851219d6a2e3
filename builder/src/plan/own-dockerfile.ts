import { execForm, startWords } from "./command.ts";
import { type BuildPlan, PlanError, type PlanInput, type Tree } from "./input.ts";

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

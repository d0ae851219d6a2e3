/** The step `plan`: writes the Dockerfile for what has been fetched. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { defaultRuntimeCatalog } from "../catalog.ts";
import { StepError } from "../failures/codes.ts";
import type { Log } from "../log/writer.ts";
import { type Paths, workPaths } from "../paths.ts";
import type { PlanTask } from "../task.ts";
import { planBuild } from "./index.ts";
import { phases } from "./input.ts";
import { findRoot, readTree } from "./read-tree.ts";

/** What the step `build` needs to know of the plan. */
export const planFile = z.object({
  runtime: z.string(),
  version: z.string().nullable(),
  /** Real path of the folder that is built. */
  root: z.string(),
  /** Phase of each named stage. */
  stages: z.record(z.string(), z.enum(phases)),
  /** What its steps run, by `<stage> <steps after it>`. */
  commands: z.record(z.string(), z.string()),
  /** Commands that are the client's own. */
  ownCommands: z.array(z.string()),
});
export type PlanFile = z.output<typeof planFile>;

/** @throws StepError when nothing can be built */
export async function planStep(
  task: PlanTask,
  log: Log,
  paths: Paths,
): Promise<{ runtime: string; version?: string }> {
  const { source, plan: folder, planFile: file } = workPaths(paths);
  const { settings, contextPath, images, catalog = defaultRuntimeCatalog(), port } = task;
  const root = await findRoot(source, contextPath);
  const result = planBuild({
    settings,
    ...(await readTree(root, settings.dockerfilePath)),
    catalog,
    images,
    port,
  });
  if (!result.ok) {
    throw new StepError(result.failure);
  }
  const { dockerfile, dockerignore, runtime, version, stages, commands, detected, notes, start } =
    result.plan;
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "Dockerfile"), dockerfile);
  if (dockerignore !== null) {
    await writeFile(join(folder, "Dockerfile.dockerignore"), dockerignore);
  }
  const ownCommands = [settings.preBuildCommand, settings.buildCommand].filter((command) => command != null);
  await writeFile(
    file,
    JSON.stringify({ runtime, version, root, stages, commands, ownCommands } satisfies PlanFile),
  );
  log.info([`Building for ${runtime}${version === null ? "" : ` ${version}`}.`, ...detected].join(" "));
  for (const note of notes) {
    log.info(note);
  }
  if (start !== null && start.length > 0) {
    log.info(`It starts with: ${start[0] === "/bin/sh" ? start.at(-1) : start.join(" ")}`);
  }
  return { runtime, ...(version === null ? {} : { version }) };
}

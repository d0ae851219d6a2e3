/** The step `plan`: writes the Dockerfile for what has been fetched. */

import { constants } from "node:fs";
import { mkdir, open, opendir, realpath, stat, writeFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { z } from "zod";
import { defaultRuntimeCatalog } from "../catalog.ts";
import { StepError } from "../failures/codes.ts";
import type { Log } from "../log/writer.ts";
import { type Paths, workPaths } from "../paths.ts";
import type { PlanTask } from "../task.ts";
import { planBuild } from "./index.ts";
import { isWanted, type PlanInput, phases } from "./input.ts";

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

// The build root as it lies on disk: which files there are, and what is in those that the planner reads.

/** Most files that are listed, and most of each that is read. */
const MAX_FILES = 50_000;
const MAX_BYTES = 1024 * 1024;
/** A package clause is before this; whole programs need not be read. */
const MAX_GO_BYTES = 64 * 1024;
/** Folders that are not searched. */
const SKIPPED = new Set([".git", "node_modules", ".venv"]);

/**
 * The folder that is built. A link is followed only where it stays inside the repository.
 * @returns its real path
 * @throws StepError `ROOT_DIRECTORY_NOT_FOUND` or `ROOT_DIRECTORY_INVALID`
 */
export async function findRoot(source: string, contextPath: string): Promise<string> {
  const detail = { name: contextPath };
  if (contextPath.split("/").some((segment) => segment.toLowerCase() === ".git")) {
    throw StepError.of("ROOT_DIRECTORY_NOT_FOUND", detail);
  }
  const base = await realpath(source);
  const root = await realpath(join(base, contextPath)).catch((error: NodeJS.ErrnoException) => {
    throw StepError.of(
      error.code === "ENOENT" ? "ROOT_DIRECTORY_NOT_FOUND" : "ROOT_DIRECTORY_INVALID",
      detail,
    );
  });
  const isInside = root === base || root.startsWith(base + sep);
  if (!isInside || !(await stat(root)).isDirectory()) {
    throw StepError.of("ROOT_DIRECTORY_INVALID", detail);
  }
  return root;
}

/** Reads what the planner needs. Links are no files to it. */
export async function readTree(
  root: string,
  dockerfilePath?: string | null,
): Promise<Pick<PlanInput, "files" | "texts">> {
  const files: string[] = [];
  const texts: Record<string, string> = {};
  const folders = [root];
  for (
    let folder = folders.shift();
    folder !== undefined && files.length < MAX_FILES;
    folder = folders.shift()
  ) {
    for await (const entry of await opendir(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !SKIPPED.has(entry.name)) {
        folders.push(path);
      } else if (entry.isFile()) {
        files.push(relative(root, path));
      }
    }
  }
  files.sort();
  for (const path of files.filter((each) => isWanted(each, dockerfilePath))) {
    texts[path] = await readStart(join(root, path), path.endsWith(".go") ? MAX_GO_BYTES : MAX_BYTES);
  }
  return { files, texts };
}

async function readStart(path: string, bytes: number): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const buffer = Buffer.alloc(bytes);
    const { bytesRead } = await file.read(buffer, 0, bytes, 0);
    return buffer.subarray(0, bytesRead).toString("utf8");
  } finally {
    await file.close();
  }
}

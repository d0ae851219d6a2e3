/** The build root as it lies on disk: which files there are, and what is in those that the planner reads. */

import { constants } from "node:fs";
import { open, opendir, realpath, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { StepError } from "../failures/codes.ts";
import { isWanted, type PlanInput } from "./input.ts";

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

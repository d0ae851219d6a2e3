/**
 * The sources of Go modules: where they are, copies of them, and programs that are built with one file of them replaced by ours, so
 * that what only that file imports is not compiled.
 */
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/exec.ts";

/** A file of a Go module, and ours in its place: a path in the folder of the program's go.mod. */
export interface ReplacedFile {
  module: string;
  file: string;
  by: string;
}

/** How Go commands of this folder run: a Go older than a pinned module requires fetches the newer toolchain as a module. */
export const moduleEnvironment = { GOTOOLCHAIN: "auto", GOFLAGS: "-mod=readonly" };

/** Folder of a module's sources, whose content go.sum vouches for; downloads them unless they are there. */
export async function moduleFolder(cwd: string, module: string): Promise<string> {
  const output = await run("go", ["mod", "download", "-json", module], { cwd, env: moduleEnvironment });
  return (JSON.parse(output) as { Dir: string }).Dir;
}

/** A file or folder of a module, whose own are read-only, which would stay with copies. */
export const copyFromModule = (from: string, to: string): Promise<string> =>
  run("cp", ["-r", "--no-preserve=all", from, to]);

/**
 * Copies the module into `folder`, with the file replaced, and a go.mod that requires the copy.
 * @param cwd folder of the program's go.mod
 * @returns the flag of `go build` for it
 */
export async function withReplacedFile(cwd: string, replaced: ReplacedFile, folder: string): Promise<string> {
  const { module, file, by } = replaced;
  const copy = join(folder, "module");
  await copyFromModule(await moduleFolder(cwd, module), copy);
  await copyFile(join(cwd, by), join(copy, file));
  const goMod = await readFile(join(cwd, "go.mod"), "utf8");
  await writeFile(join(folder, "go.mod"), `${goMod}\nreplace ${module} => ${copy}\n`);
  await copyFile(join(cwd, "go.sum"), join(folder, "go.sum"));
  return `-modfile=${join(folder, "go.mod")}`;
}

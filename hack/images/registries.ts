import { chmod, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ensurePackages } from "../cluster/packages.ts";
import { run, succeeds } from "../lib/exec.ts";
import { logDir } from "../lib/paths.ts";

/**
 * Unpacks wheels from PyPI into a folder, as they are: nothing of them is run, and none of their dependencies come along.
 * @param requirements lines of a requirements file, each with its hashes
 * @param scratch folder for what is downloaded
 * @param python version whose wheels are wanted, where they are not for any
 */
export async function unpackWheels(
  requirements: string[],
  folder: string,
  scratch: string,
  python?: string,
): Promise<void> {
  if (!(await succeeds("python3", ["-m", "pip", "--version"]))) {
    await ensurePackages(["python3-pip"], join(logDir, "up.log"));
  }
  const wheels = join(scratch, "wheels");
  await mkdir(wheels, { recursive: true });
  const file = join(scratch, "requirements.txt");
  await writeFile(file, `${requirements.join("\n")}\n`);
  const machine = process.arch === "arm64" ? "aarch64" : "x86_64";
  const built = python ? ["--python-version", python, "--platform", `manylinux_2_28_${machine}`] : [];
  const strict = ["--no-deps", "--only-binary=:all:", "--require-hashes"];
  const quiet = ["--quiet", "--disable-pip-version-check"];
  await run("python3", ["-m", "pip", "download", ...quiet, ...strict, ...built, "-r", file, "-d", wheels]);
  await mkdir(folder, { recursive: true });
  for (const wheel of (await readdir(wheels)).sort()) {
    await run("python3", ["-m", "zipfile", "-e", join(wheels, wheel), folder]);
  }
  await rm(wheels, { recursive: true });
}

/** What `npm ci` makes of a package file and its lock file, without running scripts: `node_modules` in `folder`. */
export async function installNpm(manifest: string, lock: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), manifest);
  await writeFile(join(folder, "package-lock.json"), lock);
  const flags = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  await run("npm", ["ci", ...flags], { cwd: folder, env: { NODE_ENV: undefined } });
}

/** Makes every file of a folder executable: an unpacked wheel has lost its modes. */
export async function makeExecutable(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    await chmod(join(folder, name), 0o755);
  }
}

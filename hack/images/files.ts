import { createHash } from "node:crypto";
import type { Dirent } from "node:fs";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { run } from "../lib/exec.ts";

/**
 * Packs a folder as a tar that depends on nothing but the files: sorted names, no times. Owners and modes stay as they
 * are in the folder.
 */
export async function packTar(folder: string, tar: string, exclude: string[] = []): Promise<void> {
  const patterns = exclude.map((pattern) => `--exclude=${pattern}`);
  const stable = ["--sort=name", "--mtime=@0", "--numeric-owner", "--format=gnu", "--wildcards"];
  await run("tar", ["-C", folder, ...stable, ...patterns, "-cf", tar, "."]);
}

/** The same with the files' capabilities, which only tar's newer format has room for. */
export async function packTarWithCapabilities(folder: string, tar: string): Promise<void> {
  const stable = ["--sort=name", "--mtime=@0", "--numeric-owner", "--format=posix"];
  const extended = [
    "--pax-option=delete=atime,delete=ctime",
    "--xattrs",
    "--xattrs-include=security.capability",
  ];
  await run("tar", ["-C", folder, ...stable, ...extended, "-cf", tar, "."]);
}

/** Writes files under a folder; keys are paths with or without a leading slash. */
export async function writeFiles(folder: string, files: Record<string, string>, mode = 0o644): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    const target = join(folder, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text);
    await chmod(target, mode);
  }
}

/** Paths of all files under a folder, relative to it and sorted, that `wanted` accepts; folders it refuses are not read. */
export const listFiles = (folder: string, wanted: (path: string) => boolean): Promise<string[]> =>
  list(folder, wanted, (entry) => entry.isFile());

/** The same with links, which are not followed. */
export const listEntries = (folder: string, wanted: (path: string) => boolean): Promise<string[]> =>
  list(folder, wanted, (entry) => entry.isFile() || entry.isSymbolicLink());

async function list(
  folder: string,
  wanted: (path: string) => boolean,
  listed: (entry: Dirent) => boolean,
): Promise<string[]> {
  const found: string[] = [];
  const visit = async (at: string): Promise<void> => {
    for (const entry of await readdir(at, { withFileTypes: true })) {
      const path = join(at, entry.name);
      if (!wanted(relative(folder, path))) {
        continue;
      }
      if (entry.isDirectory()) {
        await visit(path);
      } else if (listed(entry)) {
        found.push(relative(folder, path));
      }
    }
  };
  await visit(folder);
  return found.sort();
}

/** What the ca-certificates package's installation script would put together, from its files in an unpacked root. */
export async function caBundle(root: string): Promise<string> {
  const store = join(root, "usr/share/ca-certificates");
  const certificates = await listFiles(store, () => true);
  const texts = await Promise.all(certificates.map((path) => readFile(join(store, path), "utf8")));
  return texts.map((text) => `${text.trimEnd()}\n`).join("");
}

/** SHA-256 over the names and contents of files; paths are relative to `folder`. */
export async function hashFiles(folder: string, paths: string[]): Promise<string> {
  const hash = createHash("sha256");
  for (const path of paths) {
    const content = await readFile(join(folder, path));
    hash.update(`${path}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

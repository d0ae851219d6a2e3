/** Which Debian packages a layer was made from. Images have no record of it, so that the image cache has one beside them. */
import { mkdir, mkdtemp, readdir, readFile, readlink, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { run } from "../lib/exec.ts";
import { listEntries } from "./files.ts";
import { imageCache } from "./store.ts";

const debianPackage = z.object({
  name: z.string().min(1),
  /** Debian's, with its epoch: `1:1.35.0-4`. Absent where the files are of another one than the archive. */
  version: z.string().min(1).optional(),
  /** `amd64`, or `all`. */
  arch: z.string().min(1),
});
export type DebianPackage = z.infer<typeof debianPackage>;

/**
 * Which of a folder's packages have files in an image, and of which version they are: one whose files are all the same has the
 * archive's.
 * @param root an image's files
 * @param archives folder of `.deb` files
 * @param ignored whether the layer leaves out a path that packages have, relative to the root
 */
export async function packagesIn(
  root: string,
  archives: string,
  ignored: (path: string) => boolean,
): Promise<DebianPackage[]> {
  const found: DebianPackage[] = [];
  for (const file of await listArchives(archives)) {
    const own = await mkdtemp(join(archives, "package-"));
    await run("dpkg-deb", ["--extract", file, own]);
    const seen = await compare(own, root, ignored);
    await rm(own, { recursive: true });
    if (seen !== "absent") {
      const { name, version, arch } = parseControl(await run("dpkg-deb", ["--field", file]));
      found.push({ name, ...(seen === "same" && { version }), arch });
    }
  }
  return found;
}

/** Archives of packages in a folder, in the order of their names. */
export async function listArchives(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".deb")).sort();
  return names.map((name) => join(folder, name));
}

/** How a package's files are found below another root: none of them, or all that are there the same, or one that differs. */
async function compare(
  own: string,
  root: string,
  ignored: (path: string) => boolean,
): Promise<"absent" | "same" | "other"> {
  let seen: "absent" | "same" = "absent";
  for (const path of await listEntries(own, (one) => !ignored(one))) {
    const there = await contentOf(join(root, path));
    if (there === undefined) {
      continue;
    }
    if (!(await contentOf(join(own, path)))?.equals(there)) {
      return "other";
    }
    seen = "same";
  }
  return seen;
}

/** What a file has, or where a link points; undefined where there is neither. */
async function contentOf(path: string): Promise<Buffer | undefined> {
  try {
    return await readlink(path, "buffer");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") {
      return undefined;
    }
    if (code !== "EINVAL") {
      throw error;
    }
    return readFile(path);
  }
}

/** A package of its control file: https://www.debian.org/doc/debian-policy/ch-controlfields.html */
export function parseControl(control: string): Required<DebianPackage> {
  const [name, version, arch] = ["Package", "Version", "Architecture"].map((field) =>
    new RegExp(`^${field}: *(.+)$`, "m").exec(control)?.[1]?.trim(),
  );
  if (name === undefined || version === undefined || arch === undefined) {
    throw new Error(`a control file lacks a name, a version or an architecture: ${control.slice(0, 200)}`);
  }
  return { name, version, arch };
}

const recordOf = (digest: string): string =>
  join(imageCache, "packages", `${digest.replace("sha256:", "")}.json`);

/** The packages of a layer that were recorded when it was built. @param digest of its uncompressed tar, as the image's configuration has it */
export async function readPackages(digest: string): Promise<DebianPackage[] | undefined> {
  try {
    return z.array(debianPackage).parse(JSON.parse(await readFile(recordOf(digest), "utf8")));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return undefined;
    }
    throw error;
  }
}

/** Records the packages of a layer: the same files have the same packages, whatever recipe they were made by. */
export async function recordPackages(digest: string, packages: readonly DebianPackage[]): Promise<void> {
  const file = recordOf(digest);
  await mkdir(join(imageCache, "packages"), { recursive: true });
  const draft = `${file}.${process.pid}.tmp`;
  await writeFile(draft, `${JSON.stringify(packages, null, 1)}\n`);
  await rename(draft, file);
}

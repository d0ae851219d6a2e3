import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/exec.ts";
import { writeFiles } from "./files.ts";

/**
 * Where an image without dpkg says which Debian packages it has, a file each: scanners of vulnerabilities read it there in
 * distroless images, too. Relative to the image's root.
 */
export const STATUS_FOLDER = "var/lib/dpkg/status.d";

/** Records packages in an unpacked root, by the control files of their archives. @param archives `.deb` files */
export async function recordPackages(root: string, archives: readonly string[]): Promise<void> {
  for (const archive of archives) {
    const control = `${(await run("dpkg-deb", ["--field", archive])).trimEnd()}\n`;
    const name = fieldOf(control, "Package");
    if (name === undefined) {
      throw new Error(`${archive} has no name in its control file`);
    }
    await writeFiles(root, { [join(STATUS_FOLDER, name)]: control });
  }
}

/** Archives of packages in a folder, in the order of their names. */
export async function listArchives(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".deb")).sort();
  return names.map((name) => join(folder, name));
}

/** A field of one line in a control file: https://www.debian.org/doc/debian-policy/ch-controlfields.html */
export const fieldOf = (control: string, field: string): string | undefined =>
  new RegExp(`^${field}: *(.+)$`, "m").exec(control)?.[1]?.trim();

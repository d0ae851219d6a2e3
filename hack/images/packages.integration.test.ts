import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { run } from "../lib/exec.ts";
import { writeFiles } from "./files.ts";
import { packagesIn, parseControl } from "./packages.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-packages-"));
});
afterEach(() => rm(folder, { recursive: true }));

const ignored = (path: string): boolean => path === "usr/share/doc";

/** Makes an archive as Debian's are, and puts its files into the image where it is to have them. */
async function addPackage(name: string, files: Record<string, string>, isInstalled: boolean): Promise<void> {
  const own = join(folder, name);
  const control = `Package: ${name}\nVersion: 1:2.0-1\nArchitecture: all\nMaintainer: a <a@example.com>\nDescription: b\n Version: 9\n`;
  await writeFiles(own, files);
  if (isInstalled) {
    await cp(own, join(folder, "image"), { recursive: true });
  }
  await writeFiles(own, { "DEBIAN/control": control });
  await mkdir(join(folder, "archives"), { recursive: true });
  await run("dpkg-deb", ["--build", "--root-owner-group", own, join(folder, "archives", `${name}.deb`)]);
}

test("a package is of the archive's version where its files are, of an unknown one where one differs, and absent without any", async () => {
  await addPackage(
    "same",
    { "usr/bin/same": "1", "etc/same": "2", "usr/share/doc/same/copyright": "3" },
    true,
  );
  await addPackage("changed", { "usr/bin/changed": "1", "usr/bin/other": "2" }, true);
  await addPackage("absent", { "usr/bin/absent": "1", "usr/share/doc/absent/copyright": "3" }, false);
  await addPackage("documents", { "usr/share/doc/documents/copyright": "3" }, true);
  const image = join(folder, "image");
  await writeFile(join(image, "usr/bin/other"), "of another version");
  // What a layer's recipe removes says nothing.
  await rm(join(image, "etc/same"));
  await rm(join(image, "usr/share/doc/same"), { recursive: true });
  expect(await packagesIn(image, join(folder, "archives"), ignored)).toEqual([
    { name: "changed", arch: "all" },
    { name: "same", version: "1:2.0-1", arch: "all" },
  ]);
  expect(await readFile(join(image, "usr/bin/same"), "utf8")).toBe("1");
});

test("a control file without a version is refused", () => {
  expect(() => parseControl("Package: a\nArchitecture: all\n")).toThrow(/lacks a name, a version/);
});

import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseChecksums, verifyChecksums, writeChecksums } from "./checksums.ts";

const emptyFolder = (): Promise<string> => mkdtemp(join(tmpdir(), "bundle-"));

async function bundle(): Promise<string> {
  const folder = await emptyFolder();
  await mkdir(join(folder, "images/blobs"), { recursive: true });
  await writeFile(join(folder, "images/blobs/one"), "one");
  await writeFile(join(folder, "release.json"), "{}");
  await writeChecksums(folder);
  return folder;
}

test("a bundle as it was made is accepted", async () => {
  await expect(verifyChecksums(await bundle())).resolves.toBeUndefined();
});

test.each([
  [
    "one byte of an image is another",
    (folder: string) => writeFile(join(folder, "images/blobs/one"), "onf"),
    "images/blobs/one is not what it was when the bundle was made: copy the bundle again",
  ],
  [
    "a file is missing",
    (folder: string) => rm(join(folder, "release.json")),
    "release.json is missing: copy the bundle again",
  ],
  [
    "a file was added",
    (folder: string) => writeFile(join(folder, "images/more"), ""),
    "images/more is not of the bundle: remove it, or copy the bundle again",
  ],
  [
    "a link leads outside",
    (folder: string) => symlink("/etc", join(folder, "images/etc")),
    "images/etc is neither a file nor a folder",
  ],
  [
    "the checksums have another line",
    (folder: string) => writeFile(join(folder, "SHA256SUMS"), "deadbeef  release.json\n"),
    "SHA256SUMS has a line that is none: deadbeef  release.json",
  ],
])("a bundle is refused when %s", async (_, change, message) => {
  const folder = await bundle();
  await change(folder);
  await expect(verifyChecksums(folder)).rejects.toThrow(message);
});

test("a folder without checksums is no bundle", async () => {
  await expect(verifyChecksums(await emptyFolder())).rejects.toThrow("is no bundle");
});

test("a path is listed once", () => {
  const line = `${"0".repeat(64)}  a\n`;
  expect([...parseChecksums(line)]).toEqual([["a", "0".repeat(64)]]);
  expect(() => parseChecksums(line + line)).toThrow("a line that is none");
});

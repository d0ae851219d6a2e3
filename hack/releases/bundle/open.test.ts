import { chmod, mkdir, mkdtemp, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { copyPrograms } from "./open.ts";

async function program(folder: string, name: string, text: string): Promise<void> {
  await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, name, "gitea"), text);
  await chmod(join(folder, name, "gitea"), 0o755);
}

test("programs of a bundle can be run by every user, and those that are in the cache stay", async () => {
  const [bundle, cache] = [
    await mkdtemp(join(tmpdir(), "bundle-")),
    join(await mkdtemp(join(tmpdir(), "cache-")), "bin"),
  ];
  await program(bundle, "aa", "new");
  await program(bundle, "bb", "new");
  await program(cache, "bb", "there");

  await copyPrograms(bundle, cache);

  expect((await readdir(cache)).sort()).toEqual(["aa", "bb"]);
  expect((await stat(join(cache, "aa"))).mode & 0o777).toBe(0o755);
  expect((await stat(join(cache, "aa/gitea"))).mode & 0o777).toBe(0o755);
  expect(await readFile(join(cache, "bb/gitea"), "utf8")).toBe("there");
});

test("a bundle without programs is accepted", async () => {
  await expect(copyPrograms("/nowhere", "/nowhere")).resolves.toBeUndefined();
});

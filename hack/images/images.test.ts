import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { run } from "../lib/exec.ts";
import { configArgs } from "./build.ts";
import { hashFiles, listFiles, packTar } from "./files.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-images-"));
});
afterEach(() => rm(folder, { recursive: true }));

test("an image's configuration becomes arguments of buildah", () => {
  const config = { cmd: ["node", "a b"], user: "1:1", env: { A: "x y" }, ports: [80], stopSignal: "SIGINT" };
  const flags = ["--user", "1:1", "--entrypoint", "[]", "--cmd", '["node","a b"]', "--env", "A=x y"];
  expect(configArgs(config)).toEqual([...flags, "--port", "80", "--stop-signal", "SIGINT"]);
});

test("the hash of files follows their names and contents, not their times", async () => {
  await mkdir(join(folder, "src/node_modules"), { recursive: true });
  for (const path of ["src/b.ts", "src/a.ts", "src/a.test.ts", "src/node_modules/c.ts"]) {
    await writeFile(join(folder, path), path);
  }
  const files = await listFiles(
    folder,
    (path) => !path.endsWith("node_modules") && !path.endsWith(".test.ts"),
  );
  expect(files).toEqual(["src/a.ts", "src/b.ts"]);
  const before = await hashFiles(folder, files);
  await utimes(join(folder, "src/a.ts"), 1, 1);
  expect(await hashFiles(folder, files)).toBe(before);
  await writeFile(join(folder, "src/a.ts"), "else");
  expect(await hashFiles(folder, files)).not.toBe(before);
  expect(await hashFiles(folder, ["src/b.ts"])).not.toBe(await hashFiles(folder, ["src/b.ts", "src/b.ts"]));
});

test("a layer's tar is the same for the same files, without what is left out", async () => {
  const files = join(folder, "files");
  await mkdir(files);
  for (const name of ["a.js", "a.d.ts", "b.js.map"]) {
    await writeFile(join(files, name), name);
  }
  await packTar(files, join(folder, "1.tar"), ["*.d.ts", "*.map"]);
  await utimes(join(files, "a.js"), 1, 1);
  await packTar(files, join(folder, "2.tar"), ["*.d.ts", "*.map"]);
  expect((await readFile(join(folder, "1.tar"))).equals(await readFile(join(folder, "2.tar")))).toBe(true);
  expect((await run("tar", ["-tf", join(folder, "1.tar")])).trim().split("\n")).toEqual(["./", "./a.js"]);
});

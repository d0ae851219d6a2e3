import { link, mkdir, mkdtemp, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "../../lib/exec.ts";
import { packStable } from "./chart.ts";

test("packages unpack below a prefix as they were: links between files, links to rooms", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pack-"));
  await mkdir(join(folder, "tree/node_modules/@slipway"), { recursive: true });
  await writeFile(join(folder, "tree/node_modules/a"), "text");
  await link(join(folder, "tree/node_modules/a"), join(folder, "tree/node_modules/b"));
  await symlink("../../crds", join(folder, "tree/node_modules/@slipway/crds"));

  await packStable(join(folder, "tree"), ["node_modules"], join(folder, "one.tar.gz"), "slipway-1.2.3");
  await packStable(join(folder, "tree"), ["node_modules"], join(folder, "two.tar.gz"), "slipway-1.2.3");
  expect(await readFile(join(folder, "two.tar.gz"))).toEqual(await readFile(join(folder, "one.tar.gz")));

  await run("tar", ["-xzf", join(folder, "one.tar.gz"), "-C", folder]);
  const modules = join(folder, "slipway-1.2.3/node_modules");
  expect(await readFile(join(modules, "a"), "utf8")).toBe("text");
  expect(await readFile(join(modules, "b"), "utf8")).toBe("text");
  expect(await readlink(join(modules, "@slipway/crds"))).toBe("../../crds");
});

import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { run } from "../lib/exec.ts";
import { root } from "../lib/paths.ts";
import { bundleOf, keepPlace, writeBundles } from "./bundle.ts";

const app = await mkdtemp(join(tmpdir(), "slipway-bundles-"));
afterAll(() => rm(app, { recursive: true, force: true }));

test("a module of a bundle finds the files beside its source", async () => {
  const source = `export const url = import.meta.url; export const folder = import.meta.dirname;`;
  const code = keepPlace(source, "operator/src/backups/s3.ts") ?? "";
  const module = `data:text/javascript,${encodeURIComponent(code.replaceAll("import.meta.url", '"file:///app/dist/operator.js"'))}`;
  expect(await import(module)).toMatchObject({
    url: "file:///app/operator/src/backups/s3.ts",
    folder: "/app/operator/src/backups",
  });
  expect(keepPlace("export const a = 1;", "operator/src/a.ts")).toBeUndefined();
  expect(keepPlace("import.meta.url", "node_modules/a/index.js")).toBeUndefined();
});

test("every process starts from its bundle, as far as the settings that it does not have", async () => {
  await writeBundles(root, join(app, "dist"));
  for (const room of ["operator", "api-server", "builder", "node_modules"]) {
    await symlink(join(root, room), join(app, room));
  }
  for (const name of [
    "operator",
    "api-server",
    "collector",
    "log-drains",
    "activator",
    "recovery",
  ] as const) {
    const text = await readFile(join(app, bundleOf(name)), "utf8");
    expect(text).not.toMatch(/^import .* from "@slipway/m);
    const started = run(process.execPath, [join(app, bundleOf(name)), "backup"], { cwd: app });
    await expect(started).rejects.toThrow(
      name === "recovery" ? "SLIPWAY_RECOVERY_DIR: is not set" : `${name}: the environment is not complete`,
    );
  }
});

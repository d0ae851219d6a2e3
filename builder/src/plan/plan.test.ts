import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defaultRuntimeCatalog, parseBaseImages } from "../catalog.ts";
import { planBuild } from "./index.ts";
import { type BuildSettings, isWanted } from "./input.ts";

/** A folder is a case: `case.json` with settings and files, `want/` with what is planned. UPDATE_GOLDEN=1 rewrites it. */
const testdata = join(import.meta.dirname, "testdata");
const images = parseBaseImages(readFileSync(join(import.meta.dirname, "../../base-images.yaml"), "utf8"));
const catalog = defaultRuntimeCatalog();

const setting = z.string().nullable().optional();
const schema = z.strictObject({
  settings: z
    .strictObject({
      runtime: setting,
      version: setting,
      startCommand: setting,
      preBuildCommand: setting,
      buildCommand: setting,
      dockerfilePath: setting,
    })
    .default({}),
  /** Contents by path; an object is written as JSON. */
  files: z.record(z.string(), z.union([z.string(), z.record(z.string(), z.unknown())])),
});

function planCase(folder: string): Record<string, string> {
  const { settings, files } = schema.parse(JSON.parse(readFileSync(join(folder, "case.json"), "utf8")));
  const texts = Object.entries(files)
    .filter(([path]) => isWanted(path, settings.dockerfilePath))
    .map(([path, content]) => [path, typeof content === "string" ? content : JSON.stringify(content)]);
  const result = planBuild({
    settings: settings as BuildSettings,
    files: Object.keys(files),
    texts: Object.fromEntries(texts),
    catalog,
    images,
    port: 8080,
  });
  if (!result.ok) {
    return { "failure.json": `${JSON.stringify(result.failure, null, 2)}\n` };
  }
  const { dockerfile, dockerignore, ...rest } = result.plan;
  return {
    Dockerfile: dockerfile,
    "plan.json": `${JSON.stringify(rest, null, 2)}\n`,
    ...(dockerignore === null ? {} : { dockerignore }),
  };
}

describe("the plan of", () => {
  test.each(readdirSync(testdata))("%s", (name) => {
    const folder = join(testdata, name);
    const planned = planCase(folder);
    if (process.env.UPDATE_GOLDEN === "1" || !existsSync(join(folder, "want"))) {
      expect(process.env.UPDATE_GOLDEN, `${name} has no want/: write it with UPDATE_GOLDEN=1`).toBe("1");
      rmSync(join(folder, "want"), { recursive: true, force: true });
      mkdirSync(join(folder, "want"));
      for (const [file, text] of Object.entries(planned)) {
        writeFileSync(join(folder, "want", file), text);
      }
    }
    const want = readdirSync(join(folder, "want")).toSorted();
    expect(Object.keys(planned).toSorted()).toEqual(want);
    for (const file of want) {
      expect(planned[file], `${name}/want/${file}`).toBe(readFileSync(join(folder, "want", file), "utf8"));
    }
  });
});

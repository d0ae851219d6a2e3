/**
 * What an image has inside, read from its files as scanners read them: whatever put it there, it is listed. Of Debian packages images have no
 * record, and one would be another image, from which 0.1.0 restarts databases: the image cache knows which packages it built each layer from.
 */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { BuiltImage } from "../../images/build.ts";
import { inside } from "../../images/inside.ts";
import { run } from "../../lib/exec.ts";
import { debianMaterial, goMaterials, type Material, sortMaterials } from "./materials.ts";

/** Packages of Debian, npm and Python, and modules of Go programs in an image of the image cache, each once. */
export async function imageMaterials(image: Pick<BuiltImage, "reference" | "packages">): Promise<Material[]> {
  const opened = await inside(image);
  try {
    // Recipes of 0.1.0 do not know theirs.
    const debian = (await image.packages?.()) ?? [];
    return sortMaterials([...debian.map(debianMaterial), ...(await readMaterials(opened.root))]);
  } finally {
    await opened.close();
  }
}

/** Packages of npm and Python, and modules of Go programs in a folder that has an image's files. */
export async function readMaterials(root: string): Promise<Material[]> {
  const [npm, python, go] = await Promise.all([
    readEach(await find(root, "*/node_modules/*/package.json"), npmMaterial),
    readEach(await find(root, "*.dist-info/METADATA"), pythonMaterial),
    run("go", ["version", "-m", root]),
  ]);
  return sortMaterials([...npm, ...python, ...goMaterials(go)]);
}

const packageFile = z.object({ name: z.string(), version: z.string(), license: z.string().optional() });

/** An npm package of its package.json; undefined for what only marks a folder's module type. */
export function npmMaterial(text: string): Material | undefined {
  const parsed = packageFile.safeParse(JSON.parse(text));
  if (!parsed.success) {
    return undefined;
  }
  const { name, version, license } = parsed.data;
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  return { name, version, purl, ...(license && { license }) };
}

/** A Python package of its METADATA: https://packaging.python.org/en/latest/specifications/core-metadata/ */
export function pythonMaterial(metadata: string): Material | undefined {
  const [name, version] = ["Name", "Version"].map((field) =>
    new RegExp(`^${field}: *(.+)$`, "m").exec(metadata)?.[1]?.trim(),
  );
  if (name === undefined || version === undefined) {
    return undefined;
  }
  return { name, version, purl: `pkg:pypi/${name.toLowerCase().replaceAll("_", "-")}@${version}` };
}

async function readEach(
  files: readonly string[],
  materialOf: (text: string) => Material | undefined,
): Promise<Material[]> {
  const found = await Promise.all(files.map(async (file) => materialOf(await readFile(file, "utf8"))));
  return found.filter((one) => one !== undefined);
}

async function find(root: string, pattern: string): Promise<string[]> {
  const found = await run("find", [root, "-xdev", "-type", "f", "-path", pattern]);
  return found.split("\n").filter(Boolean);
}

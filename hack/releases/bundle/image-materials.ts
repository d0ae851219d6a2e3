/** What an image has inside, read from its files as scanners read them: whatever put it there, it is listed. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { fieldOf, STATUS_FOLDER } from "../../images/dpkg-status.ts";
import { inside } from "../../images/inside.ts";
import { run } from "../../lib/exec.ts";
import { goMaterials, type Material, sortMaterials } from "./materials.ts";

/** Packages of Debian, npm and Python, and modules of Go programs in an image of the image cache, each once. */
export async function imageMaterials(image: { reference: string }): Promise<Material[]> {
  const opened = await inside(image);
  try {
    return await readMaterials(opened.root);
  } finally {
    await opened.close();
  }
}

/** The same of a folder that has an image's files. */
export async function readMaterials(root: string): Promise<Material[]> {
  const [debian, npm, python, go] = await Promise.all([
    readEach(await filesIn(join(root, STATUS_FOLDER)), debianMaterial),
    readEach(await find(root, "*/node_modules/*/package.json"), npmMaterial),
    readEach(await find(root, "*.dist-info/METADATA"), pythonMaterial),
    run("go", ["version", "-m", root]),
  ]);
  return sortMaterials([...debian, ...npm, ...python, ...goMaterials(go)]);
}

/** A Debian package of its control file. */
export function debianMaterial(control: string): Material | undefined {
  const [name, version, arch] = ["Package", "Version", "Architecture"].map((field) =>
    fieldOf(control, field),
  );
  if (name === undefined || version === undefined || arch === undefined) {
    return undefined;
  }
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${arch}`;
  return { name, version, purl };
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
  const [name, version] = ["Name", "Version"].map((field) => fieldOf(metadata, field));
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

async function filesIn(folder: string): Promise<string[]> {
  // An image of programs alone has no Debian packages.
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") {
      return [];
    }
    throw error;
  });
  return names.map((name) => join(folder, name));
}

async function find(root: string, pattern: string): Promise<string[]> {
  const found = await run("find", [root, "-xdev", "-type", "f", "-path", pattern]);
  return found.split("\n").filter(Boolean);
}

/** Writes the bundle of a release. */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import type { BinaryName } from "../../cluster/programs.ts";
import type { BuiltImage, StackImage } from "../../images/index.ts";
import { run } from "../../lib/exec.ts";
import { say, step } from "../../lib/steps.ts";
import { packChart, packStable } from "./chart.ts";
import { writeChecksums } from "./checksums.ts";
import { imageMaterials } from "./image-materials.ts";
import { addChart, addImage } from "./layout.ts";
import { BUNDLE, type BundledImage, chartName, imagesOf, type ReleaseManifest } from "./manifest.ts";
import { goMaterials, type Material, npmMaterials, spdxDocument } from "./materials.ts";
import { provenanceOf } from "./provenance.ts";
import { signChecksums } from "./signature.ts";
import { type ReleaseTree, recipesOf } from "./sources.ts";

export interface BundleOptions {
  version: string;
  /** Folder that does not exist yet. */
  out: string;
  /** Images of databases: one version of each engine, or all. */
  databases: "default" | "all";
  /** Whether it has the programs of the embedded cluster and npm packages: a machine needs neither compiler nor registry then. */
  programs: boolean;
  /** PEM of the private key that signs it. */
  keyFile: string | undefined;
}

/** Programs that tests alone need. */
const OF_TESTS: readonly string[] = ["actionlint", "kwok", "versitygw"];

type Recipes = Awaited<ReturnType<typeof recipesOf>>;

/** Writes the bundle of a tree. @returns what it says of itself */
export async function writeBundle(tree: ReleaseTree, options: BundleOptions): Promise<ReleaseManifest> {
  const { version, out } = options;
  const at = (name: string) => join(out, name);
  await mkdir(out, { recursive: true });
  const recipes = await recipesOf(tree.path);
  const built = new Map<string, BuiltImage>();
  const release = await step("images", () => writeImages(recipes, tree, options, built));
  await writeFile(at(BUNDLE.manifest), `${JSON.stringify(release, null, 2)}\n`);
  const list = imagesOf(release).map(({ name, digest }) => `${name}@${digest}\n`);
  await writeFile(at(BUNDLE.imageList), list.join(""));
  await step("chart", async () => {
    const { archive, metadata } = await packChart(tree.path, version, at(BUNDLE.chart));
    await addChart(at(BUNDLE.images), { archive, metadata, name: chartName(release) });
    await cp(join(tree.path, "charts/slipway/files/crds"), at(BUNDLE.definitions), { recursive: true });
  });
  const programs = options.programs ? await step("programs", () => copyPrograms(recipes, out)) : [];
  await step("sources", async () => {
    const archive = ["archive", "--format=tar.gz", `--prefix=slipway-${version}/`, "-o", at(BUNDLE.source)];
    await run("git", ["-C", tree.path, ...archive, tree.commit]);
    if (options.programs) {
      await packModules(tree.path, version, at(BUNDLE.modules));
    }
  });
  await step("bills of materials", () => writeMaterials(tree, { release, built, programs }, options));
  await step("provenance, checksums and signature", async () => {
    const files = await writeChecksums(out);
    await writeFile(at(BUNDLE.provenance), `${JSON.stringify(provenanceOf(release, files), null, 2)}\n`);
    await writeChecksums(out);
    if (options.keyFile !== undefined) {
      await signChecksums(out, options.keyFile);
    }
  });
  return release;
}

/** Builds all images, or finds them built, and adds them to the layout. @param all receives them by reference */
async function writeImages(
  recipes: Recipes,
  { commit }: ReleaseTree,
  { version, out, databases }: BundleOptions,
  all: Map<string, BuiltImage>,
): Promise<ReleaseManifest> {
  const layout = join(out, BUNDLE.images);
  const added = new Map<string, string>();
  // One at a time: each writes the layout's index.
  const bundled = async (built: BuiltImage): Promise<BundledImage> => {
    const { name, tag, reference } = built;
    const digest = added.get(reference) ?? (await addImage(layout, built));
    if (!added.has(reference)) {
      say(`${name}:${tag}`);
    }
    added.set(reference, digest);
    all.set(reference, built);
    return { name, tag, reference, digest };
  };
  const stack: Partial<Record<StackImage["name"], BundledImage>> = {};
  for (const image of recipes.images) {
    stack[image.name] = await bundled(await image.build());
  }
  const ofDatabases: ReleaseManifest["databases"] = [];
  const keyOf = ({ engine, version }: { engine: string; version: string }) => `${engine}:${version}`;
  const defaults = recipes.databaseImages("default").map(keyOf);
  for (const { build, reference: _, ...database } of recipes.databaseImages(databases)) {
    const isDefault = defaults.includes(keyOf(database));
    ofDatabases.push({ ...database, isDefault, image: await bundled(await build()) });
  }
  const bases: ReleaseManifest["bases"] = [];
  for (const recipe of recipes.baseImages()) {
    const image = await bundled(await recipes.buildImage(recipe));
    bases.push({ tag: recipe.version ?? image.tag, image });
  }
  return {
    format: 1,
    version,
    commit,
    images: stack as ReleaseManifest["images"],
    databases: ofDatabases,
    builder: await bundled(await recipes.buildImage(recipes.builder())),
    bases,
  };
}

/** Copies the programs of the embedded cluster, built where they are not. @returns their paths in the bundle */
async function copyPrograms({ binaries, ensureBinaries }: Recipes, out: string): Promise<string[]> {
  const names = (Object.keys(binaries) as BinaryName[]).filter((name) => !OF_TESTS.includes(name));
  const paths = await ensureBinaries(names);
  const copied: string[] = [];
  for (const path of paths) {
    const to = join(out, BUNDLE.programs, basename(dirname(path)));
    await cp(dirname(path), to, {
      recursive: true,
      // Locks and drafts of builds.
      filter: (from) => !/(\/\.lock|\.tmp|\.modules)$/.test(from),
    });
    copied.push(join(to, basename(path)));
  }
  return copied;
}

/** Packs the npm packages of a tree, so that they are unpacked beside its sources. */
async function packModules(tree: string, version: string, archive: string): Promise<void> {
  const found = await run("find", [tree, "-name", "node_modules", "-prune", "-type", "d"]);
  const folders = found.split("\n").filter(Boolean);
  const paths = folders.map((path) => relative(tree, path)).sort();
  await packStable(tree, paths, archive, `slipway-${version}`);
}

/** SPDX documents of the platform's npm packages, of each Go program and of each image. */
async function writeMaterials(
  { path, commit }: ReleaseTree,
  {
    release,
    built,
    programs,
  }: { release: ReleaseManifest; built: ReadonlyMap<string, BuiltImage>; programs: readonly string[] },
  { version, out }: BundleOptions,
): Promise<void> {
  const folder = join(out, BUNDLE.materials);
  await mkdir(folder, { recursive: true });
  const date = (await run("git", ["-C", path, "show", "-s", "--format=%ct", commit])).trim();
  const created = new Date(Number(date) * 1_000).toISOString().replace(/\.\d+Z$/, "Z");
  const write = async (file: string, subject: { name: string; purl?: string }, materials: Material[]) => {
    const document = spdxDocument({ version, commit, created, ...subject }, materials);
    await writeFile(join(folder, `${file}.spdx.json`), `${JSON.stringify(document, null, 1)}\n`);
  };
  await write(
    "slipway",
    { name: "slipway" },
    npmMaterials(await readFile(join(path, "package-lock.json"), "utf8")),
  );
  for (const program of programs) {
    const name = basename(program);
    await write(name, { name }, goMaterials(await run("go", ["version", "-m", program])));
  }
  for (const image of imagesOf(release)) {
    const purl = `pkg:oci/${basename(image.name)}@${image.digest}`;
    const file = `image-${image.name.replaceAll("/", "-")}-${image.tag}`;
    await write(file, { name: image.name, purl }, await imageMaterials(built.get(image.reference) ?? image));
  }
}

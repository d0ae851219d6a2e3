import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { contentHash } from "../lib/hash.ts";
import { type DebianPackage, readPackages, recordPackages } from "./packages.ts";
import { buildah, hasImage, layerDigests, localHost, scratchRoot } from "./store.ts";

/** One layer of an image: files, and a key that changes when they would. */
export interface Layer {
  name: string;
  /** Content hash over everything that decides the layer's files. */
  key(): Promise<string>;
  /**
   * Writes the layer as an uncompressed tar whose entries carry their final owners; `scratch` is removed afterwards, `below` is
   * the image of the layers below it.
   */
  write(tar: string, scratch: string, below: string): Promise<void>;
  /**
   * Debian packages of the layer, if it has any: of what `write` left in `scratch`, or of an image's files where `scratch` is
   * empty.
   */
  packages?(scratch: string, root?: string): Promise<DebianPackage[]>;
}

/** What a container of the image runs as; the OCI image configuration's own fields. */
export interface ImageConfig {
  entrypoint?: string[];
  cmd?: string[];
  env?: Record<string, string>;
  /** `uid:gid`, always numeric so that `runAsNonRoot` can be checked. */
  user: string;
  workdir?: string;
  /** TCP ports. */
  ports?: number[];
  stopSignal?: string;
}

export interface ImageRecipe {
  /** Repository, as in `slipway/operator`. */
  name: string;
  /** Leading part of the tag, for images whose version a person reads. */
  version?: string;
  layers: Layer[];
  config: ImageConfig;
}

export interface BuiltImage {
  name: string;
  /** `<version>-<content hash>`, or the content hash alone: the same content always has the same tag. */
  tag: string;
  /** Reference in the image cache, and in a container runtime after an import. */
  reference: string;
  /** False when the cache already held it. */
  built: boolean;
  /** Its Debian packages, where the recipe is known. Takes a minute for a layer that was built before the cache had records of them. */
  packages?: () => Promise<DebianPackage[]>;
}

const layersInWork = new Map<string, Promise<string>>();

/** Name, tag and reference of an image, whether it has been built or not. */
export async function identifyImage(recipe: ImageRecipe): Promise<Omit<BuiltImage, "built">> {
  return identify(recipe, await layerKeys(recipe));
}

const layerKeys = (recipe: ImageRecipe) => Promise.all(recipe.layers.map((layer) => layer.key()));

function identify(recipe: ImageRecipe, keys: string[]): Omit<BuiltImage, "built"> {
  const hash = contentHash([...keys, JSON.stringify(recipe.config)]);
  const tag = recipe.version ? `${recipe.version}-${hash}` : hash;
  return { name: recipe.name, tag, reference: `${localHost}/${recipe.name}:${tag}` };
}

/**
 * Builds an image from its layers, or finds it in the cache: an image whose layers' keys and configuration are
 * unchanged costs one look-up. Layers are kept as images of their own, so that images share their lower ones and a
 * changed upper layer leaves the lower ones alone.
 */
export async function buildImage(recipe: ImageRecipe): Promise<BuiltImage> {
  const keys = await layerKeys(recipe);
  const identity = identify(recipe, keys);
  const { reference } = identity;
  const image = { ...identity, packages: () => packagesOf(recipe.layers, reference) };
  if (await hasImage(reference)) {
    return { ...image, built: false };
  }
  const from = await layerImage(recipe.layers, keys);
  await inContainer(from, async (container) => {
    await buildah(["config", ...configArgs(recipe.config), container]);
    await buildah(["commit", "--quiet", "--timestamp", "0", container, reference]);
  });
  return { ...image, built: true };
}

/** The reference of an image that holds exactly these layers; `scratch` for none. */
async function layerImage(layers: Layer[], keys: string[]): Promise<string> {
  const top = layers.at(-1);
  if (!top) {
    return "scratch";
  }
  const reference = `${localHost}/layer:${contentHash(keys)}`;
  const work =
    layersInWork.get(reference) ?? addLayer(reference, top, layers.slice(0, -1), keys.slice(0, -1));
  layersInWork.set(reference, work);
  // A failure is not remembered: the next build tries again.
  return work.finally(() => layersInWork.delete(reference));
}

async function addLayer(reference: string, top: Layer, below: Layer[], keysBelow: string[]): Promise<string> {
  if (await hasImage(reference)) {
    return reference;
  }
  const from = await layerImage(below, keysBelow);
  const scratch = await mkdtemp(join(await scratchRoot(), `${top.name}-`));
  try {
    const tar = join(scratch, "layer.tar");
    await top.write(tar, scratch, from);
    await inContainer(from, async (container) => {
      // A folder added as such would belong to root throughout; a tar keeps its owners.
      await buildah(["add", "--quiet", container, tar, "/"]);
      await buildah(["commit", "--quiet", "--timestamp", "0", container, reference]);
    });
    const digest = (await layerDigests(reference)).at(-1);
    if (top.packages && digest) {
      await recordPackages(digest, await top.packages(scratch));
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return reference;
}

/** What was recorded of an image's layers; of one without a record, what its files are found to be. */
async function packagesOf(layers: Layer[], reference: string): Promise<DebianPackage[]> {
  const digests = await layerDigests(reference);
  const found: DebianPackage[] = [];
  for (const [index, layer] of layers.entries()) {
    // An image has its layers' own digests first, in their order.
    const digest = digests[index];
    if (layer.packages === undefined || digest === undefined) {
      continue;
    }
    const recorded = await readPackages(digest);
    found.push(...(recorded ?? (await findPackages(layer, digest, reference))));
  }
  return found;
}

async function findPackages(layer: Layer, digest: string, reference: string): Promise<DebianPackage[]> {
  const scratch = await mkdtemp(join(await scratchRoot(), `${layer.name}-`));
  let found: DebianPackage[] = [];
  try {
    await inContainer(reference, async (container) => {
      found = (await layer.packages?.(scratch, await buildah(["mount", container]))) ?? [];
    });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  await recordPackages(digest, found);
  return found;
}

async function inContainer(from: string, work: (container: string) => Promise<void>): Promise<void> {
  const container = await buildah(["from", "--quiet", "--pull-never", from]);
  try {
    await work(container);
  } finally {
    await buildah(["rm", container]);
  }
}

/** The arguments of `buildah config` that set an image's configuration. */
export function configArgs(config: ImageConfig): string[] {
  const args = ["--user", config.user];
  args.push("--entrypoint", JSON.stringify(config.entrypoint ?? []));
  if (config.cmd) {
    args.push("--cmd", JSON.stringify(config.cmd));
  }
  for (const [name, value] of Object.entries(config.env ?? {})) {
    args.push("--env", `${name}=${value}`);
  }
  if (config.workdir) {
    args.push("--workingdir", config.workdir);
  }
  for (const port of config.ports ?? []) {
    args.push("--port", String(port));
  }
  if (config.stopSignal) {
    args.push("--stop-signal", config.stopSignal);
  }
  return args;
}

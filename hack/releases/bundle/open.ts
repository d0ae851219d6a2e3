/** A bundle that is installed: checked, and its images as sources of a stack's. */
import { existsSync } from "node:fs";
import { cp, mkdir, readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { StackImage } from "../../images/index.ts";
import type { ImageSource, ImageSources } from "../../images/sources.ts";
import { imageId } from "../../images/store.ts";
import { run } from "../../lib/exec.ts";
import { createWhole } from "../../lib/files.ts";
import { binaryCache } from "../../lib/paths.ts";
import { UserError } from "../../lib/steps.ts";
import { configOf, loadImage } from "./layout.ts";
import { BUNDLE, type BundledImage, type ReleaseManifest } from "./manifest.ts";
import { readRelease } from "./read.ts";

export interface Bundle {
  release: ReleaseManifest;
  /** Path of the packed chart. */
  chart: string;
  images: ImageSources;
}

/**
 * Checks every byte of a bundle and reads what it has; nothing of it is used before that.
 * @param keyFile public key that it has to be signed with; without one, only that its files are those of its checksums is checked
 * @throws UserError for a bundle that is not as it was made
 */
export async function openBundle(path: string, keyFile: string | undefined): Promise<Bundle> {
  const folder = resolve(path);
  if (!existsSync(folder)) {
    throw new UserError(`there is no bundle at ${path}`);
  }
  const release = await readRelease(folder, keyFile);
  await copyPrograms(join(folder, BUNDLE.programs), binaryCache);
  return {
    release,
    chart: join(folder, BUNDLE.chart, `slipway-${release.version}.tgz`),
    images: bundledImages(join(folder, BUNDLE.images), release),
  };
}

/**
 * Copies programs that a cache lacks, file by file: an interrupted build may have left a folder without its program. Folders are named by
 * what their program was built from.
 */
export async function copyPrograms(folder: string, cache: string): Promise<void> {
  if (!existsSync(folder)) {
    return;
  }
  for (const name of await readdir(folder)) {
    await mkdir(join(cache, name), { recursive: true });
    for (const file of await readdir(join(folder, name))) {
      const to = join(cache, name, file);
      if (!existsSync(to)) {
        await createWhole(to, async (draft) => {
          await cp(join(folder, name, file), draft, { recursive: true });
          // Checksums do not cover modes, so that those of the bundle are not taken over.
          await run("chmod", ["-R", "u=rwX,go=rX,a-s", draft]);
        });
      }
    }
  }
}

/** The images of a release in a layout. */
function bundledImages(layout: string, release: ReleaseManifest): ImageSources {
  const sourceOf = (image: BundledImage): ImageSource => ({
    reference: async () => image.reference,
    build: async () => {
      const { name, tag, reference } = image;
      // A name alone does not vouch for what an earlier installation has put there.
      const built = (await imageId(reference)) !== (await configOf(layout, image));
      if (built) {
        await loadImage(layout, { name, tag, reference });
      }
      return { name, tag, reference, built };
    },
  });
  const names = Object.keys(release.images) as StackImage["name"][];
  return {
    stack: names.map((name) => ({
      name,
      build: sourceOf(release.images[name]).build,
      deliver: name.startsWith("sample") ? "push" : "import",
    })),
    databases: release.databases.map(({ image, ...database }) => ({ ...database, ...sourceOf(image) })),
    builder: sourceOf(release.builder),
    bases: release.bases.map(({ image, tag }) => ({ ...sourceOf(image), name: image.name, tag })),
  };
}

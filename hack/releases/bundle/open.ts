/** A bundle that is installed: checked, and its images as sources of a stack's. */
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import type { StackImage } from "../../images/index.ts";
import type { ImageSource, ImageSources } from "../../images/sources.ts";
import { hasImage } from "../../images/store.ts";
import { binaryCache } from "../../lib/paths.ts";
import { say, UserError } from "../../lib/steps.ts";
import { verifyChecksums } from "./checksums.ts";
import { loadImage } from "./layout.ts";
import { BUNDLE, type BundledImage, parseManifest, type ReleaseManifest } from "./manifest.ts";
import { verifySignature } from "./signature.ts";

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
  if (keyFile === undefined) {
    say("the signature is not checked: --bundle-key FILE names the public key of whoever released it");
  } else {
    await verifySignature(folder, keyFile);
  }
  await verifyChecksums(folder);
  const release = parseManifest(await readFile(join(folder, BUNDLE.manifest), "utf8"));
  say(`release ${release.version} of commit ${release.commit.slice(0, 8)}: all files are as they were made`);
  await copyPrograms(join(folder, BUNDLE.programs), binaryCache);
  return {
    release,
    chart: join(folder, BUNDLE.chart, `slipway-${release.version}.tgz`),
    images: bundledImages(join(folder, BUNDLE.images), release),
  };
}

/** Copies programs that a cache lacks; their folders are named by what they were built from. */
export async function copyPrograms(folder: string, cache: string): Promise<void> {
  if (!existsSync(folder)) {
    return;
  }
  await mkdir(cache, { recursive: true });
  for (const name of await readdir(folder)) {
    const to = join(cache, basename(name));
    if (existsSync(to)) {
      continue;
    }
    const draft = await mkdtemp(join(cache, ".bundle-"));
    await cp(join(folder, name), draft, { recursive: true });
    // A temporary folder is its owner's alone, and some programs run as other users.
    await chmod(draft, 0o755);
    await rename(draft, to).catch(() => rm(draft, { recursive: true }));
  }
}

/** The images of a release in a layout. */
function bundledImages(layout: string, release: ReleaseManifest): ImageSources {
  const sourceOf = (image: BundledImage): ImageSource => ({
    reference: async () => image.reference,
    build: async () => {
      const { name, tag, reference } = image;
      const built = !(await hasImage(reference));
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
    bases: release.bases.map(({ image, tag }) => ({ ...sourceOf(image), tag })),
  };
}

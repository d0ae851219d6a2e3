import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { run, succeeds } from "../lib/exec.ts";
import { cacheDir, runDir } from "../lib/paths.ts";

/** Debian packages that building and delivering images needs. */
export const aptPackages = ["buildah", "busybox-static", "ca-certificates", "dpkg", "libcap2-bin", "tar"];

/** Built images, shared by every checkout: buildah's own storage, and scratch space beside it. */
export const imageCache = join(cacheDir, "images");

/** First part of the references of images built here; no registry answers to it. */
export const localHost = "slipway.local";

const storage = ["--root", join(imageCache, "storage"), "--runroot", join(runDir, "buildah")];
// The process's own CA and proxy variables never reach an image: nothing here runs commands inside one.
const env = { BUILDAH_ISOLATION: "chroot", BUILDAH_LAYERS: undefined };

/** Runs buildah on the image cache and returns its standard output without the final line break. */
export async function buildah(args: string[]): Promise<string> {
  return (await run("buildah", [...storage, ...args], { env })).trimEnd();
}

/** Whether the image cache holds an image under this reference. */
export async function hasImage(reference: string): Promise<boolean> {
  return succeeds(
    "buildah",
    [...storage, "inspect", "--type", "image", "--format", "{{.FromImageID}}", reference],
    { env },
  );
}

/** The id of an image in the cache, which is the digest of its configuration; undefined when there is none. */
export async function imageId(reference: string): Promise<string | undefined> {
  if (!(await hasImage(reference))) {
    return undefined;
  }
  const id = await buildah(["inspect", "--type", "image", "--format", "{{.FromImageID}}", reference]);
  return `sha256:${id}`;
}

/** Digests of an image's layers, as its configuration has them, the lowest first. */
export async function layerDigests(reference: string): Promise<string[]> {
  const format = "{{range .OCIv1.RootFS.DiffIDs}}{{.}} {{end}}";
  const listed = await buildah(["inspect", "--type", "image", "--format", format, reference]);
  return listed.split(" ").filter(Boolean);
}

/** Makes the folders of the image cache and returns the one for scratch files. */
export async function scratchRoot(): Promise<string> {
  const folder = join(imageCache, "scratch");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

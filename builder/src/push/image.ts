/** The image that a build has left, opened once and for all before any of it is published. */

import { createHash } from "node:crypto";
import { type FileHandle, realpath } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { failure, StepError } from "../failures/codes.ts";
import { openRegularFile, readRegularFile } from "../regular-file.ts";

export interface Blob {
  digest: string;
  /** Bytes that are read of it, however it grows meanwhile. */
  size: number;
  file: FileHandle;
}

export interface OpenedImage {
  digest: string;
  mediaType: string;
  manifest: Buffer;
  /** Configuration and layers, each once. */
  blobs: Blob[];
  close(): Promise<void>;
}

const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;
/** More than any file system puts together. */
const MAX_LAYERS = 512;

const digest = z.string().regex(/^sha256:[a-f0-9]{64}$/);
const index = z.object({
  manifests: z
    .array(
      z.object({
        mediaType: z.enum([
          "application/vnd.oci.image.manifest.v1+json",
          "application/vnd.docker.distribution.manifest.v2+json",
        ]),
        digest,
      }),
    )
    .length(1),
});
const manifestOf = z.object({
  config: z.object({ digest }),
  layers: z.array(z.object({ digest })).max(MAX_LAYERS),
});

/**
 * Opens an OCI layout of one image. The build's own steps can reach it, also while it is read: only regular files that lie in it
 * are opened, and only these handles are read from. What is published may be nonsense then; it is nothing of this container's.
 * @throws StepError when it is none that can be published
 */
export async function openImage(folder: string, maxBytes: number): Promise<OpenedImage> {
  const blobs: Blob[] = [];
  const close = async (): Promise<void> => void (await Promise.all(blobs.map(({ file }) => file.close())));
  try {
    const [named] = index.parse(await readJson(join(folder, "index.json"))).manifests;
    if (named === undefined) {
      throw new Error("no manifest");
    }
    const manifest = await readRegularFile(blobPath(folder, named.digest), MAX_DOCUMENT_BYTES);
    const own = `sha256:${createHash("sha256").update(manifest).digest("hex")}`;
    if (own !== named.digest) {
      throw new Error("another manifest");
    }
    const { config, layers } = manifestOf.parse(JSON.parse(manifest.toString("utf8")));
    for (const each of new Set([config, ...layers].map((part) => part.digest))) {
      const file = await openRegularFile(blobPath(folder, each));
      blobs.push({ digest: each, size: (await file.stat()).size, file });
    }
    const bytes = blobs.reduce((sum, { size }) => sum + size, 0);
    if (bytes > maxBytes) {
      const name = `${Math.ceil(bytes / 1e6)} MB, at most ${Math.floor(maxBytes / 1e6)} MB`;
      throw new StepError(failure("BUILD_IMAGE_TOO_LARGE", { name }));
    }
    return { ...named, manifest, blobs, close };
  } catch (error) {
    await close();
    if (error instanceof StepError) {
      throw error;
    }
    throw StepError.of("BUILD_FAILED_UNCLASSIFIED", { said: "The image is none that can be published." });
  }
}

/** Path of the layout without a link in the part that is the platform's own. */
export async function imageFolder(work: string, image: string): Promise<string> {
  return join(await realpath(work), image.slice(work.length));
}

const readJson = async (path: string): Promise<unknown> =>
  JSON.parse((await readRegularFile(path, MAX_DOCUMENT_BYTES)).toString("utf8"));

const blobPath = (folder: string, name: string): string =>
  join(folder, "blobs/sha256", name.slice("sha256:".length));

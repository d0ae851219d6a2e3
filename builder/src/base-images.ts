/** Base images of builds: settings of the installation, never shown to clients. */

import { parse } from "yaml";
import { z } from "zod";
import { describeIssues } from "./issues.ts";

// Characters that a Dockerfile's FROM reads literally: no space, no `$`, no quote, no backslash.
const reference = z
  .string()
  .min(1)
  .max(512)
  .regex(/^[a-z0-9][A-Za-z0-9._:/@-]*$/, "must be an image reference");

const words = z.array(z.string().min(1).max(1024)).min(1).max(32);

const entry = z.union([
  reference.transform((image): BaseImage => ({ build: image, run: image })),
  z
    .strictObject({ build: reference.optional(), run: reference, command: words.optional() })
    .transform(({ build, run, command }): BaseImage => ({ build: build ?? run, run, command })),
]);

/** The image that a runtime's version is installed and compiled with, and the one that it runs in. */
export interface BaseImage {
  build: string;
  run: string;
  /** Start command, for runtimes whose image contains a server; undefined: the image's own command. */
  command?: string[];
}

export const baseImages = z.record(z.string(), z.record(z.string(), entry));

/** By runtime, then by version. A runtime without versions has the entry `default`. */
export type BaseImages = z.output<typeof baseImages>;

/** The version under which a runtime without versions has its image. */
export const ONLY_VERSION = "default";

/** Reads the settings. @throws Error that names every invalid key */
export function parseBaseImages(yaml: string): BaseImages {
  const result = baseImages.safeParse(parse(yaml));
  if (!result.success) {
    throw new Error(`base images: ${describeIssues(result.error)}`);
  }
  return result.data;
}

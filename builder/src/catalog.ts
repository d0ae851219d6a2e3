/** The runtime catalog: runtimes that can be built for, with their versions, and the base images that builds of them use. */

import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";

/** Runtimes that the planner can plan for. */
export const runtimeIds = ["node", "python", "go", "php", "ruby", "java", "static", "dockerfile"] as const;
export type RuntimeId = (typeof runtimeIds)[number];

const runtime = z
  .strictObject({
    id: z.enum(runtimeIds),
    name: z.string().min(1).max(64),
    versions: z
      .array(z.string().regex(/^[0-9]+(\.[0-9]+)*$/, "must be a version such as 24 or 3.13"))
      .max(32),
    default_version: z.string().optional(),
  })
  .refine(({ versions }) => new Set(versions).size === versions.length, {
    message: "lists a version twice",
    path: ["versions"],
  })
  .refine(
    ({ versions, default_version }) =>
      versions.length === 0
        ? default_version === undefined
        : default_version !== undefined && versions.includes(default_version),
    {
      message: "must be one of the versions, and absent when there are none",
      path: ["default_version"],
    },
  );

export const runtimeCatalog = z
  .strictObject({ runtimes: z.array(runtime).min(1) })
  .refine(({ runtimes }) => new Set(runtimes.map(({ id }) => id)).size === runtimes.length, {
    message: "lists a runtime twice",
    path: ["runtimes"],
  });
export type RuntimeCatalog = z.output<typeof runtimeCatalog>;
export type Runtime = RuntimeCatalog["runtimes"][number];

/** Reads a catalog file. @throws Error that names every invalid field */
export function parseRuntimeCatalog(yaml: string): RuntimeCatalog {
  const result = runtimeCatalog.safeParse(parse(yaml));
  if (!result.success) {
    throw new Error(`runtime catalog: ${describeIssues(result.error)}`);
  }
  return result.data;
}

/** The catalog that comes with the platform. */
export function defaultRuntimeCatalog(): RuntimeCatalog {
  return parseRuntimeCatalog(readFileSync(new URL("../runtimes.yaml", import.meta.url), "utf8"));
}

/** A runtime as clients see it. */
export interface PublicRuntime {
  id: RuntimeId;
  name: string;
  /** Whether this installation can build for it. */
  available: boolean;
  versions: string[];
  default_version: string | null;
}

/**
 * The catalog for clients: no images, and only versions that this installation has images for. Of a runtime without any
 * image all versions are listed, and `available` is false. A Dockerfile names its own images. Pure.
 * @param given undefined where nothing is built
 */
export function publicRuntimes(catalog: RuntimeCatalog, given: BaseImages | undefined): PublicRuntime[] {
  const images = given ?? {};
  return catalog.runtimes.map(({ id, name, versions, default_version }) => {
    const built = versions.filter((version) => images[id]?.[version] !== undefined);
    const available =
      (id === "dockerfile" && given !== undefined) ||
      (versions.length === 0 ? images[id]?.[ONLY_VERSION] !== undefined : built.length > 0);
    const shown = available ? built : versions;
    const preferred = default_version !== undefined && shown.includes(default_version);
    return {
      id,
      name,
      available,
      versions: shown,
      default_version: (preferred ? default_version : shown[0]) ?? null,
    };
  });
}

// Base images of builds: settings of the installation, never shown to clients.

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

/** Every broken rule on one line, each with the path of its field. */
export function describeIssues(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join(".") || "."}: ${message}`).join("; ");
}

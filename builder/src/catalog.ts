/** The runtime catalog: runtimes that can be built for, with their versions. */

import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { type BaseImages, ONLY_VERSION } from "./base-images.ts";
import { describeIssues } from "./issues.ts";

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

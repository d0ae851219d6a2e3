import { type BaseImages, baseImages } from "@slipway/builder";
import { parse } from "yaml";
import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import type { EventStreams } from "../http/event-streams.ts";
import type { BuildStore } from "./store.ts";

/** What the platform has for builds. */
export interface BuildPlatform {
  store: BuildStore;
  /** Whether this platform builds. */
  isOffered: () => boolean;
  /** The address under which Git servers reach the API, without a slash at its end; without one refs are only polled. */
  hookBase: string | undefined;
  /** PEM private key that signs tokens of the builds' registry; undefined where there is none. */
  registryKey: () => string | undefined;
  /** `host` or `host:port` of the builds' registry; undefined where nothing is built. */
  registryHost: () => string | undefined;
  /** The process's own, which logs of applications share. */
  streams: EventStreams;
}

/** @throws Failure 503 where nothing is built */
export function requireBuilds({ builds }: { builds: Pick<BuildPlatform, "isOffered"> }): void {
  if (!builds.isOffered()) {
    throw failures.projectFeatureUnavailable("building from a Git repository");
  }
}

/** What the API reads of the operator's settings of builds: the rest is the operator's. */
const settings = z.looseObject({
  baseImages: baseImages.default({}),
  registry: z.looseObject({ host: z.string().optional() }).default({}),
});

/** What the API knows of how projects are built. */
export interface BuildSettings {
  baseImages: BaseImages;
  registryHost: string | undefined;
}

/** Reads the file that `SLIPWAY_BUILDS_FILE` names. @throws Error that lists what is wrong */
export function parseBuildSettings(text: string): BuildSettings {
  const result = settings.safeParse(parse(text) ?? {});
  if (!result.success) {
    throw new Error(`no valid settings of builds:\n${z.prettifyError(result.error)}`);
  }
  return { baseImages: result.data.baseImages, registryHost: result.data.registry.host };
}

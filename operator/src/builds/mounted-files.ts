/** Opens the files that the chart mounts for builds. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { registryKeySet } from "@slipway/crds";
import { type GithubAppConfig, mountedGithubApp } from "@slipway/git";
import { MountedFile } from "@slipway/process";
import type { BuildOptions } from "./controller.ts";
import { parseBuildSettings } from "./settings.ts";

export interface BuildConfig {
  /** YAML with the settings. */
  file: string;
  /** PEM private key that signs tokens of the registry. */
  registryKeyFile: string;
  /** Folder with variables for the tools of builds, a file for each. */
  toolsDir?: string;
  /** `host:port` of Git servers whose address may be private. */
  gitAllowedHosts: readonly string[];
  /** PEM authorities of Git servers beside the public ones. */
  gitCaFile?: string;
  /** The platform's GitHub App; without one nothing is built from GitHub. */
  githubApp?: GithubAppConfig;
}

/** Secrets are read again for each use, as they may change. @throws Error when a file is missing or invalid */
export async function openMountedBuildFiles(
  config: BuildConfig,
  log: Parameters<typeof MountedFile.open>[2],
): Promise<
  Pick<BuildOptions, "registryKey" | "tools" | "git"> & {
    settings: MountedFile<ReturnType<typeof parseBuildSettings>>;
  }
> {
  const registryKey = () => readFileSync(config.registryKeyFile, "utf8");
  // Fails at startup rather than with the first build.
  registryKeySet(registryKey());
  return {
    settings: await MountedFile.open(config.file, parseBuildSettings, log),
    registryKey,
    tools: () => variables(config.toolsDir),
    git: {
      allowedHosts: config.gitAllowedHosts,
      ca: config.gitCaFile === undefined ? "" : readFileSync(config.gitCaFile, "utf8"),
      githubApp: mountedGithubApp(config.githubApp),
    },
  };
}

/** Kubernetes' own entries begin with two dots. */
function variables(folder: string | undefined): Record<string, string> {
  if (folder === undefined || !existsSync(folder)) {
    return {};
  }
  const names = readdirSync(folder).filter((name) => !name.startsWith(".."));
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), "utf8").trimEnd()]));
}

/** Adds builds and Git connections to a manager. */

import type { Manager } from "@slipway/controller-runtime";
import type { MountedFile } from "@slipway/process";
import { addGitConnectionController } from "../git/controller.ts";
import { BuiltPull } from "../projects/images/built-pull.ts";
import { addBuildController, type BuildOptions } from "./controller.ts";
import type { BuildSettings } from "./settings.ts";
import { connectionOpener } from "./sources.ts";

/** How projects are built from Git. */
export type BuildsOptions = Omit<BuildOptions, "projects" | "settings"> & {
  settings: Pick<MountedFile<BuildSettings>, "current" | "run">;
};

export function addBuilds(
  manager: Manager,
  { settings, ...dependencies }: BuildsOptions,
  projects: BuildOptions["projects"],
): void {
  addBuildController(manager, { ...dependencies, projects, settings: () => settings.current });
  addGitConnectionController(manager, {
    projects,
    open: connectionOpener({ client: manager.client, ...dependencies.git }),
  });
  manager.addRunnable({
    name: "build-settings",
    leaderOnly: false,
    run: (signal) => settings.run(signal),
  });
}

/** Keeps what nodes pull built images with. */
export function createBuiltPull(
  { client, clock }: Manager,
  { settings, registryKey }: BuildsOptions,
): BuiltPull {
  return new BuiltPull({ client, clock, registryKey, host: () => settings.current.registry.host });
}

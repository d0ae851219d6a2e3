/** The tasks of a build pod's containers. Pure. */

import { type Container, podPaths, type Task } from "@slipway/builder/contract";
import type { Build, Project } from "@slipway/crds";
import { organizationOfBuild } from "../names.ts";
import type { BuildSettings } from "../settings.ts";

/** Where the commit is fetched from, resolved right before. */
export interface SourceAddress {
  /** Without a credential. */
  url: string;
  provider: string;
  /** The checked address that the host was resolved to. */
  address?: string;
}

export interface TaskInput {
  build: Build;
  project: Pick<Project, "metadata" | "spec">;
  source: SourceAddress;
  settings: BuildSettings;
  /** Whether the Git server's authority is among the files of `fetch`. */
  hasGitCa: boolean;
}

/** Files with authorities in the containers' Secrets. */
export const caFiles = {
  git: `${podPaths.secrets}/ca/git.pem`,
  registry: `${podPaths.secrets}/ca/registry.pem`,
  steps: `${podPaths.secrets}/ca/steps.pem`,
} as const;

/** Port of applications without a configured one. */
const DEFAULT_PORT = 8_080;

/** Repository of a project's images, without tag and digest. */
export function imageRepository(build: Build, settings: BuildSettings): string {
  return `${settings.registry.host}/${repositoryPath(build)}`;
}

/** The same in the registry's tokens. */
export const repositoryPath = (build: Build): string =>
  `${organizationOfBuild(build)}/${build.spec.projectRef.name}`;

export function tasks({ build, project, source, settings, hasGitCa }: TaskInput): Record<Container, Task[]> {
  const { spec } = build;
  const { limits, registry } = settings;
  const given = spec.build ?? spec.github ?? {};
  const { runtime, version, startCommand, preBuildCommand, buildCommand, contextPath } = given;
  const registryCa = registry.ca === "" ? {} : { caFile: caFiles.registry };
  const fetch: Task = {
    step: "fetch",
    ...source,
    ...(spec.commitSha === undefined ? {} : { commitSha: spec.commitSha }),
    ...(spec.tag === undefined ? { branch: spec.branch } : { tag: spec.tag }),
    ...(hasGitCa ? { caFile: caFiles.git } : {}),
    maxBytes: limits.fetchBytes,
    maxFiles: limits.fetchFiles,
    timeoutSeconds: limits.fetchSeconds,
  };
  const plan: Task = {
    step: "plan",
    settings: {
      runtime,
      version,
      startCommand,
      preBuildCommand,
      buildCommand,
      dockerfilePath: spec.build?.dockerfilePath,
    },
    ...(contextPath === undefined ? {} : { contextPath }),
    images: settings.baseImages,
    port: project.spec.port ?? DEFAULT_PORT,
  };
  const make: Task = {
    step: "build",
    engine: settings.engine,
    registries: { [registry.host]: registryCa },
    ...(settings.ca === "" ? {} : { caFile: caFiles.steps }),
    cacheBytes: settings.cache.bytes,
    maxImageBytes: limits.imageBytes,
    timeoutSeconds: limits.buildSeconds,
  };
  const push: Task = {
    step: "push",
    repository: imageRepository(build, settings),
    ...(/^[a-z0-9][a-z0-9.-]{0,127}$/.test(build.metadata.name) ? { tag: build.metadata.name } : {}),
    ...registryCa,
    maxImageBytes: limits.imageBytes,
    timeoutSeconds: limits.pushSeconds,
  };
  return { fetch: [fetch], build: [plan, make], push: [push] };
}

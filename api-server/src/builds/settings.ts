import type { PublicRuntime } from "@slipway/builder";
import { createProjectBodies, normalizeContextPath, type ProjectSpec, toCamel } from "@slipway/crds";
import { type TriggerMode, triggerMode, type VersionDeploy } from "@slipway/git";
import type { z } from "zod";
import { failures } from "../errors/catalog.ts";
import type { FieldError } from "../errors/failure.ts";
import { atLeastOneField } from "../http/validate.ts";

/** Settings of sources and builds: as a spec has them, as clients send and read them. Pure. */

type Source = NonNullable<ProjectSpec["source"]>;
type Github = NonNullable<ProjectSpec["github"]>;
export type AnySource = Source | Github;
type StoredVersions = NonNullable<Source["versionDeploy"]>;

/** The source of a project, connected or legacy; undefined for one that runs an image. */
export const sourceOf = ({ source, github }: ProjectSpec): AnySource | undefined => source ?? github;

/** The mode in which it is published. */
export const modeOf = ({ branch, autoDeploy, versionDeploy }: AnySource): TriggerMode =>
  triggerMode({ branch, autoDeploy, ...(versionDeploy ? { versionDeploy: plain(versionDeploy) } : {}) });

function plain({ enabled, event, tagPattern, includePrereleases }: StoredVersions): VersionDeploy {
  return {
    enabled,
    ...(event === undefined ? {} : { event }),
    ...(tagPattern === undefined ? {} : { tagPattern }),
    ...(includePrereleases === undefined ? {} : { includePrereleases }),
  };
}

/** What decides about events: as `@slipway/git` reads it. */
export function triggerSettings({ branch, autoDeploy, versionDeploy }: AnySource) {
  return { branch, autoDeploy, ...(versionDeploy ? { versionDeploy: plain(versionDeploy) } : {}) };
}

/** Publication by version as clients read it; older settings have none, which means that it is off. */
export interface VersionDeployView {
  enabled: boolean;
  event: "tag" | "release";
  tag_pattern: string;
  include_prereleases: boolean;
}

export function versionDeployView(versionDeploy: StoredVersions | undefined): VersionDeployView {
  if (!versionDeploy?.enabled) {
    return { enabled: false, event: "tag", tag_pattern: "*", include_prereleases: false };
  }
  const { event = "tag", tagPattern = "*", includePrereleases = false } = versionDeploy;
  return {
    enabled: true,
    event,
    tag_pattern: tagPattern,
    include_prereleases: event === "release" && includePrereleases,
  };
}

/** Settings as they are sent: what is left out stays as it is. */
export interface DeploySettingsPatch {
  auto_deploy?: boolean | undefined;
  version_deploy?:
    | {
        enabled?: boolean | undefined;
        event?: "tag" | "release" | undefined;
        tag_pattern?: string | undefined;
        include_prereleases?: boolean | undefined;
      }
    | undefined;
}

/**
 * The settings after a patch of them.
 * @throws Failure 400 where the result contradicts itself: both modes together, or versions without a pattern
 */
export function mergeDeploySettings(
  current: Pick<AnySource, "autoDeploy" | "versionDeploy">,
  { auto_deploy, version_deploy }: DeploySettingsPatch,
): { autoDeploy: boolean; versionDeploy?: StoredVersions } {
  const autoDeploy = auto_deploy ?? current.autoDeploy;
  const versionDeploy = mergeVersions(current.versionDeploy, version_deploy);
  const errors: FieldError[] = [];
  if (autoDeploy && versionDeploy?.enabled) {
    errors.push({
      field: auto_deploy === undefined ? "version_deploy.enabled" : "auto_deploy",
      message: "auto_deploy cannot be true while version_deploy.enabled is true",
    });
  }
  if (versionDeploy?.enabled && versionDeploy.tagPattern === undefined) {
    errors.push({ field: "version_deploy.tag_pattern", message: "is required when enabled is true" });
  }
  if (errors.length > 0) {
    throw failures.validation(errors);
  }
  return { autoDeploy, ...(versionDeploy ? { versionDeploy } : {}) };
}

function mergeVersions(
  current: StoredVersions | undefined,
  patch: DeploySettingsPatch["version_deploy"],
): StoredVersions | undefined {
  if (patch === undefined) {
    return current;
  }
  const enabled = patch.enabled ?? current?.enabled ?? false;
  // What was set while they were on is not kept once they are off: then the defaults apply.
  if (!enabled) {
    return { enabled };
  }
  const event = patch.event ?? current?.event ?? "tag";
  const tagPattern = patch.tag_pattern ?? current?.tagPattern;
  const includePrereleases = patch.include_prereleases ?? current?.includePrereleases ?? false;
  return {
    enabled,
    event,
    ...(tagPattern === undefined ? {} : { tagPattern }),
    ...(event === "release" ? { includePrereleases } : {}),
  };
}

type Settings = Pick<NonNullable<ProjectSpec["build"]>, "runtime" | "version">;

/** Build settings that the runtime catalog does not have. Pure. @param prefix their path in the body, such as `config.build.` */
export function runtimeErrors(
  { runtime, version }: Settings,
  runtimes: readonly PublicRuntime[],
  prefix = "",
): FieldError[] {
  if (runtime === undefined) {
    return [];
  }
  const known = runtimes.find(({ id }) => id === runtime);
  const at = (field: string, message: string): FieldError[] => [{ field: `${prefix}${field}`, message }];
  if (known === undefined) {
    return at("runtime", `must be one of: ${runtimes.map(({ id }) => id).join(", ")}`);
  }
  if (!known.available) {
    return at("runtime", `this platform cannot build ${known.name} applications`);
  }
  if (version === undefined || known.versions.includes(version)) {
    return [];
  }
  return known.versions.length === 0
    ? at("version", `${known.name} has no versions to choose from`)
    : at("version", `must be one of: ${known.versions.join(", ")}`);
}

/** Source and build settings as they are sent: the bodies of a creation, by their own names. */

const { source, build } = (createProjectBodies.http.shape.config as z.ZodObject).shape as Record<
  string,
  z.ZodOptional
>;

export const sourceBody = source?.unwrap() as z.ZodType<Record<string, unknown>>;
export const buildBody = build?.unwrap() as z.ZodObject;

/** A body with its normalized path in the repository: `/v1` accepts spaces, a leading `./` and a trailing `/`. Refuses nothing. */
export function normalizePath(sent: unknown): unknown {
  if (typeof sent !== "object" || sent === null) {
    return sent;
  }
  const { context_path } = sent as { context_path?: unknown };
  if (typeof context_path !== "string") {
    return sent;
  }
  return { ...sent, context_path: normalizeContextPath(context_path) };
}

/** The same of a body that has the settings as a part. */
export function normalizeBuildPath(sent: unknown): unknown {
  if (typeof sent !== "object" || sent === null || !("build" in sent)) {
    return sent;
  }
  return { ...sent, build: normalizePath(sent.build) };
}

/** Some of the settings of a build; null removes one. */
export const buildPatchBody = atLeastOneField(buildBody);

export const toSource = (sent: unknown): NonNullable<ProjectSpec["source"]> =>
  toCamel(sent) as NonNullable<ProjectSpec["source"]>;

/** Settings merged with those that were sent; null removes one. Pure. */
export function withSettings<T extends object>(current: T, sent: Record<string, unknown>): T {
  const merged = { ...current, ...(toCamel(sent) as object) };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null)) as T;
}

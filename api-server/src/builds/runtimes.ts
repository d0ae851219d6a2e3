import type { PublicRuntime } from "@slipway/builder";
import type { ProjectSpec } from "@slipway/crds";
import type { FieldError } from "../errors/failure.ts";

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

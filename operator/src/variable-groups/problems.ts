/** Why the variables of a run of sources cannot be copied. Pure. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import { GROUP_BYTES_MAX } from "@slipway/crds";
import { recordedBytes } from "../projects/secrets.ts";
import type { Finding } from "../projects/status.ts";
import { isResolvedSecret, MAX_RESOLVED_BYTES } from "../references/resolved-secret.ts";
import type { SharedContent } from "./contents.ts";
import type { SharedRun, SharedSource } from "./shared.ts";

/** Bytes of names and values in all copies of an organization, those included that are not deleted yet: they must not fill etcd. */
export const MAX_COPIES_BYTES = 64 * 1_024 * 1_024;

/** What a Secret counts for against that. Only copies of shared variables have it recorded of all that have such names. */
export const bytesOf = (secret: KubernetesObject): number =>
  isResolvedSecret(secret) ? (recordedBytes(secret) ?? 0) : 0;

/**
 * @param contents of the run's sources
 * @param room bytes that the organization's copies may still have; undefined where the copy exists
 */
export function copyProblem(
  { sources, isOfGroups }: SharedRun,
  contents: readonly SharedContent[],
  room = Number.POSITIVE_INFINITY,
): Finding | undefined {
  for (const [index, source] of sources.entries()) {
    const problem = sourceProblem(source, contents[index]);
    if (problem) {
      return problem;
    }
  }
  const bytes = contents.reduce((sum, one) => sum + one.bytes, 0);
  if (bytes > MAX_RESOLVED_BYTES) {
    const what = isOfGroups ? "The variable groups are" : "Secrets with variables are";
    return tooLarge(`${what} together larger than ${MAX_RESOLVED_BYTES / 1_024} KiB`);
  }
  const most = MAX_COPIES_BYTES / 1_048_576;
  return bytes > room
    ? tooLarge(`The organization's projects would have more than ${most} MiB of variables that they share`)
    : undefined;
}

function sourceProblem(source: SharedSource, content: SharedContent | undefined): Finding | undefined {
  if (content === undefined) {
    return missing(source);
  }
  const { secret, group } = source;
  const what = group === undefined ? `The Secret ${secret}` : `The variable group ${group}`;
  if (content.tooLong !== undefined) {
    return tooLarge(`${what}: ${content.tooLong} is longer than Linux passes to a process`);
  }
  const most = group === undefined ? MAX_RESOLVED_BYTES : GROUP_BYTES_MAX;
  return content.bytes > most ? tooLarge(`${what} is larger than ${most / 1_024} KiB`) : undefined;
}

const tooLarge = (message: string): Finding => ({ reason: "VariablesTooLarge", message });

export function missing({ secret, group }: SharedSource): Finding {
  const of = group === undefined ? "" : ` of the variable group ${group}`;
  return { reason: "SecretNotFound", message: `The Secret ${secret}${of} does not exist` };
}

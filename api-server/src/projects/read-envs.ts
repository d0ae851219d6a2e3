import { type KubeClient, KubeError, type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  annotations,
  type EnvironmentVariable,
  isEnvSecretName,
  type Project,
  type SourcedVariable,
  type VariableGroup,
  type VariableSource,
} from "@slipway/crds";
import { mapConcurrently } from "../concurrency.ts";
import { failures } from "../errors/catalog.ts";
import { projectResource, variableGroupResource } from "../resources.ts";
import { byName } from "./creation/secrets.ts";

/** Reads a project's environment variables, which are in Secrets. */

/** A Secret as the apiserver sends it: values in Base64. */
export type StoredSecret = KubernetesObject & { data?: Record<string, string> };

/** Bytes of names and values of one answer: more than any process can be given, so no running project has more. */
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_CONCURRENT_READS = 4;
const TIMEOUT_MS = 5_000;
/** Reads of a project whose Secrets are replaced and removed at the same time. */
const MAX_ATTEMPTS = 3;

/**
 * A project's environment variables as they are in the cluster now, whichever client wrote their Secrets: those of its variable groups
 * and its own, of two with one name the later Secret's, in the order in which `/v1` was sent its own, others after them by name. A value
 * that is no UTF-8 is shown with U+FFFD.
 *
 * @throws Failure 404 when the project is deleted, 409 when the Secrets have too much for one answer or one does not exist:
 *   an incomplete answer would be taken for a complete one, and sent back as it is. 503
 */
export async function readEnvironment(
  kube: KubeClient,
  { metadata }: Pick<Project, "metadata">,
): Promise<SourcedVariable[]> {
  const ref = { namespace: metadata.namespace, name: metadata.name };
  try {
    for (let attempt = 1; ; attempt += 1) {
      const live = await kube.getOrUndefined<Project>(projectResource, ref, { timeoutMs: TIMEOUT_MS });
      if (!live) {
        throw failures.projectNotFound();
      }
      const origins = [...(await readGroups(kube, live)), ...ownOrigins(live)];
      const secrets = await readSecrets(kube, live, origins);
      const missing = origins.find((_, index) => secrets[index] === undefined);
      if (missing === undefined) {
        return sourcedVariables(origins.map((one, index) => ({ ...one, object: secrets[index] ?? {} })));
      }
      if (attempt === MAX_ATTEMPTS) {
        throw failures.environmentIncomplete(missing.secret);
      }
    }
  } catch (error) {
    throw error instanceof KubeError ? failures.clusterUnavailable(error) : error;
  }
}

/** A Secret of variables, and where they come from. */
interface Origin {
  secret: string;
  source: VariableSource;
}

/** The Secrets that a spec names itself. Pure. */
function ownOrigins({ metadata, spec }: Project): Origin[] {
  return (spec.envsFrom ?? []).map(({ name, references }) => ({
    secret: name,
    source:
      references !== undefined || isEnvSecretName(metadata.name, name)
        ? { type: "project" }
        : { type: "secret", name },
  }));
}

/** Those of the groups that it attaches and that exist. */
async function readGroups(kube: KubeClient, { metadata, spec }: Project): Promise<Origin[]> {
  const found = await mapConcurrently(spec.variableGroups ?? [], MAX_CONCURRENT_READS, (name) =>
    kube.getOrUndefined<VariableGroup>(
      variableGroupResource,
      { namespace: metadata.namespace, name },
      { timeoutMs: TIMEOUT_MS },
    ),
  );
  return found.flatMap((group) => {
    const { displayName: name, secretRef } = group?.spec ?? {};
    return group === undefined || secretRef === undefined
      ? []
      : [{ secret: secretRef.name, source: { type: "group" as const, id: group.metadata.name, name } }];
  });
}

async function readSecrets(
  kube: KubeClient,
  { metadata }: Project,
  origins: readonly Origin[],
): Promise<(StoredSecret | undefined)[]> {
  let bytes = 0;
  return mapConcurrently(origins, MAX_CONCURRENT_READS, async ({ secret: name }) => {
    const ref = { namespace: metadata.namespace, name };
    const secret = await kube.getOrUndefined<StoredSecret>(resources.secrets, ref, { timeoutMs: TIMEOUT_MS });
    bytes += Object.entries(secret?.data ?? {}).reduce(
      (sum, [key, value]) => sum + key.length + Buffer.byteLength(value, "base64"),
      0,
    );
    if (bytes > MAX_BYTES) {
      throw failures.environmentTooLarge(MAX_BYTES);
    }
    return secret;
  });
}

/** The variables of these Secrets, in their order. Pure. */
export const variablesOf = (secrets: readonly StoredSecret[]): EnvironmentVariable[] =>
  sourcedVariables(secrets.map((object) => ({ object, source: { type: "project" } })));

/** The same, each with where it comes from unless all are the project's own. Pure. */
function sourcedVariables(
  secrets: readonly { object: StoredSecret; source: VariableSource }[],
): SourcedVariable[] {
  const found = new Map<string, { position: number; value: string; source: VariableSource }>();
  for (const { object, source } of secrets) {
    const names = Object.keys(object.data ?? {}).map((name) => ({ name }));
    // Positions are those of one list.
    const positions = source.type === "project" ? positionsOf(object, names.length) : [];
    for (const [index, { name }] of names.sort(byName).entries()) {
      const value = Buffer.from(object.data?.[name] ?? "", "base64").toString("utf8");
      found.set(name, { value, source, position: positions[index] ?? Number.MAX_SAFE_INTEGER });
    }
  }
  const isPlain = [...found.values()].every(({ source }) => source.type === "project");
  return [...found]
    .map(([name, { position, value, source }]) => ({ name, position, value, source }))
    .sort((a, b) => a.position - b.position || byName(a, b))
    .map(({ name, value, source }) => (isPlain ? { name, value } : { name, value, source }));
}

/** What a caller may see: without the right to read groups, not their values. Pure. */
export function withoutHidden(
  variables: readonly SourcedVariable[],
  mayReadGroups: boolean,
): SourcedVariable[] {
  return variables.map((one) =>
    mayReadGroups || one.source?.type !== "group"
      ? one
      : { ...one, value: "", source: { ...one.source, hidden: true } },
  );
}

/** The positions of its variables in the request to `/v1`; empty for Secrets that other clients wrote or changed. */
function positionsOf(secret: StoredSecret, count: number): number[] {
  const written = secret.metadata?.annotations?.[annotations.envOrder];
  if (written === undefined) {
    return [];
  }
  const positions = written.split(",").map(Number);
  return positions.length === count && positions.every(Number.isSafeInteger) ? positions : [];
}

import { type KubeClient, KubeError, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { annotations, type EnvironmentVariable, type Project } from "@slipway/crds";
import { mapConcurrently } from "../../concurrent.ts";
import { failures } from "../../errors/catalog.ts";
import { projectResource } from "../../resources.ts";
import { byName } from "../creation/env-secrets.ts";

/** A Secret as the apiserver sends it: values in Base64. */
export type StoredSecret = KubernetesObject & { data?: Record<string, string> };

/** Bytes of names and values of one answer: more than any process can be given, so no running project has more. */
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_CONCURRENT_READS = 4;
const TIMEOUT_MS = 5_000;
/** Reads of a project whose Secrets are replaced and removed at the same time. */
const MAX_ATTEMPTS = 3;

/**
 * A project's environment variables as they are in the cluster now, whichever client wrote their Secrets: of two with one name the
 * later Secret's, in the order in which `/v1` was sent them, others after them by name. A value that is no UTF-8 is
 * shown with U+FFFD.
 *
 * @throws Failure 404 when the project is deleted, 409 when the Secrets hold too much for one answer or one does not exist:
 *   an incomplete answer would be taken for a complete one, and sent back as it is. 503
 */
export async function readEnvironment(
  kube: KubeClient,
  { metadata }: Pick<Project, "metadata">,
): Promise<EnvironmentVariable[]> {
  const ref = { namespace: metadata.namespace, name: metadata.name };
  try {
    for (let attempt = 1; ; attempt += 1) {
      const live = await kube.getOrUndefined<Project>(projectResource, ref, { timeoutMs: TIMEOUT_MS });
      if (!live) {
        throw failures.projectNotFound();
      }
      const secrets = await readSecrets(kube, live);
      const present = secrets.filter((secret) => secret !== undefined);
      if (present.length === secrets.length) {
        return variablesOf(present);
      }
      if (attempt === MAX_ATTEMPTS) {
        throw failures.environmentIncomplete(live.spec.envsFrom?.[secrets.indexOf(undefined)]?.name ?? "");
      }
    }
  } catch (error) {
    throw error instanceof KubeError ? failures.clusterUnavailable(error) : error;
  }
}

async function readSecrets(
  kube: KubeClient,
  { metadata, spec }: Project,
): Promise<(StoredSecret | undefined)[]> {
  let bytes = 0;
  return mapConcurrently(spec.envsFrom ?? [], MAX_CONCURRENT_READS, async ({ name }) => {
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
export function variablesOf(secrets: readonly StoredSecret[]): EnvironmentVariable[] {
  const found = new Map<string, { position: number; value: string }>();
  for (const secret of secrets) {
    const names = Object.keys(secret.data ?? {}).map((name) => ({ name }));
    const positions = positionsOf(secret, names.length);
    for (const [index, { name }] of names.sort(byName).entries()) {
      const value = Buffer.from(secret.data?.[name] ?? "", "base64").toString("utf8");
      found.set(name, { value, position: positions[index] ?? Number.MAX_SAFE_INTEGER });
    }
  }
  return [...found]
    .map(([name, { position, value }]) => ({ name, position, value }))
    .sort((a, b) => a.position - b.position || byName(a, b))
    .map(({ name, value }) => ({ name, value }));
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

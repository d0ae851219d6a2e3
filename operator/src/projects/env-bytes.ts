/** Bytes of the variables in a Secret that the API created, recorded in an annotation, so that they are known without its data. */

import { isNotFound, type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { annotations } from "@slipway/crds";
import { contentOf } from "./secrets.ts";

/** Whether a Secret holds variables of its project. Pure. */
export const isEnvSecret = (secret: KubernetesObject): boolean => contentOf(secret) === "env";

/** Bytes of names and values as they are recorded; undefined where they are not, as on Secrets of an earlier version. Pure. */
export function recordedBytes({ metadata }: KubernetesObject): number | undefined {
  const recorded = metadata?.annotations?.[annotations.envBytes];
  return recorded !== undefined && /^[0-9]{1,9}$/.test(recorded) ? Number(recorded) : undefined;
}

/** Bytes of names and values of a Secret's data, which is base64. Pure. */
export function bytesOfData(data: Readonly<Record<string, string>>): number {
  return Object.entries(data).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value, "base64"),
    0,
  );
}

/** Reads one Secret and records its bytes on it. One that was deleted meanwhile is ignored. */
export async function recordBytes(
  client: KubeClient,
  { metadata }: KubernetesObject,
  signal: AbortSignal,
): Promise<void> {
  const ref = { namespace: metadata?.namespace, name: metadata?.name ?? "" };
  try {
    const { data = {} } = await client.get<KubernetesObject & { data?: Record<string, string> }>(
      resources.secrets,
      ref,
      { signal },
    );
    const recorded = { [annotations.envBytes]: String(bytesOfData(data)) };
    await client.patch(resources.secrets, ref, { metadata: { annotations: recorded } }, { signal });
  } catch (error) {
    if (!isNotFound(error)) {
      throw error;
    }
  }
}

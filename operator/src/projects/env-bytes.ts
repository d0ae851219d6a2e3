/** Bytes of the variables in a Secret that the API made: noted on it, so that they are known without reading it. */

import { isNotFound, type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { annotations } from "@slipway/crds";
import { contentOf } from "./secrets.ts";

/** Whether a Secret holds variables of its project. Pure. */
export const isEnvSecret = (secret: KubernetesObject): boolean => contentOf(secret) === "env";

/** Bytes of names and values as they are noted; undefined where they are not, as on what an earlier version made. Pure. */
export function recordedBytes({ metadata }: KubernetesObject): number | undefined {
  const noted = metadata?.annotations?.[annotations.envBytes];
  return noted !== undefined && /^[0-9]{1,9}$/.test(noted) ? Number(noted) : undefined;
}

/** Bytes of names and values of a Secret's data, which is base64. Pure. */
export function bytesOfData(data: Readonly<Record<string, string>>): number {
  return Object.entries(data).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value, "base64"),
    0,
  );
}

/** Reads one Secret and notes its bytes on it. One that is gone meanwhile is left alone. */
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
    const noted = { [annotations.envBytes]: String(bytesOfData(data)) };
    await client.patch(resources.secrets, ref, { metadata: { annotations: noted } }, { signal });
  } catch (error) {
    if (!isNotFound(error)) {
      throw error;
    }
  }
}

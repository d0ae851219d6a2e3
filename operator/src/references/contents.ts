/** The content of Secrets whose variables are resolved, and of those that they refer to. Never logged, nor stored anywhere else. */

import { type KubeClient, type KubernetesObject, resources, type Store } from "@slipway/controller-runtime";

/** Text by key. */
export type SecretContent = Readonly<Record<string, string>>;

interface SecretObject extends KubernetesObject {
  data?: Record<string, string>;
}

/** Bytes of keys and values that are kept in memory. */
const MAX_BYTES = 8 * 2 ** 20;

interface Known {
  version: string;
  content: SecretContent;
  bytes: number;
}

/** Reads each version of a watched Secret once; those that the watch has not reported yet, at every call. */
export class SecretContents {
  readonly #client: KubeClient;
  readonly #secrets: Store;
  readonly #isRead: (key: string, value: string) => boolean;
  readonly #maxBytes: number;
  /** Those that were read last are last. */
  readonly #known = new Map<string, Known>();
  #bytes = 0;

  /**
   * @param secrets those of organizations' namespaces, without their data
   * @param isRead what of a Secret is of interest: nothing else of it stays in memory
   */
  constructor({
    client,
    secrets,
    isRead,
    maxBytes = MAX_BYTES,
  }: {
    client: KubeClient;
    secrets: Store;
    isRead: (key: string, value: string) => boolean;
    maxBytes?: number;
  }) {
    this.#client = client;
    this.#secrets = secrets;
    this.#isRead = isRead;
    this.#maxBytes = maxBytes;
    secrets.subscribe(({ type, object: { metadata } }) => {
      if (type === "delete") {
        this.#forget(`${metadata?.namespace}/${metadata?.name}`);
      }
    });
  }

  /**
   * What is of interest in a Secret; undefined when it does not exist.
   * @param fresh reads it live, since the watch may be behind
   * @throws KubeError
   */
  async read(
    ref: { namespace: string; name: string },
    { signal, fresh = false }: { signal: AbortSignal; fresh?: boolean },
  ): Promise<SecretContent | undefined> {
    const key = `${ref.namespace}/${ref.name}`;
    const seen = this.#secrets.get(ref.namespace, ref.name);
    const known = this.#known.get(key);
    if (!fresh && seen && known?.version === versionOf(seen)) {
      this.#keep(key, known);
      return known.content;
    }
    const live = await this.#client.getOrUndefined<SecretObject>(resources.secrets, ref, { signal });
    this.#forget(key);
    if (!live) {
      return undefined;
    }
    const entries = Object.entries(live.data ?? {})
      .map(([name, value]) => [name, Buffer.from(value, "base64").toString("utf8")] as const)
      .filter(([name, value]) => this.#isRead(name, value));
    const content = Object.fromEntries(entries);
    if (seen) {
      const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
      this.#keep(key, { version: versionOf(live), content, bytes });
    }
    return content;
  }

  #keep(key: string, known: Known): void {
    this.#forget(key);
    this.#known.set(key, known);
    this.#bytes += known.bytes;
    for (const oldest of this.#known.keys()) {
      if (this.#bytes <= this.#maxBytes) {
        return;
      }
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    this.#bytes -= this.#known.get(key)?.bytes ?? 0;
    this.#known.delete(key);
  }
}

function versionOf({ metadata }: KubernetesObject): string {
  return `${metadata?.uid ?? ""}/${metadata?.resourceVersion ?? ""}`;
}

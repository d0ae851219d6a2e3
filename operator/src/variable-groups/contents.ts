/** What Secrets of shared variables contain, by a hash: of their values nothing stays in memory. */

import { createHash } from "node:crypto";
import { type KubeClient, type KubernetesObject, resources, type Store } from "@slipway/controller-runtime";
import { bytesOfData } from "../projects/secrets.ts";
import { MAX_VARIABLE_BYTES } from "../references/resolved-secret.ts";

/** The content of a Secret as far as it matters whether it has changed, or is too large. */
export interface SharedContent {
  /** SHA-256 of names and values, in hexadecimal digits. */
  digest: string;
  /** Of names and values together. */
  bytes: number;
  /** A variable that Linux passes to no process. */
  tooLong?: string;
}

type SecretObject = KubernetesObject & { data?: Record<string, string> };
type Ref = { namespace: string; name: string };

/** Secrets whose hashes are kept; the ones that were read last. */
const MAX_KNOWN = 20_000;

/** Reads each version of a watched Secret once. */
export class SharedContents {
  readonly #client: KubeClient;
  readonly #secrets: Store;
  readonly #known = new Map<string, SharedContent & { version: string }>();

  /** @param secrets those of organizations' namespaces, without their data */
  constructor({ client, secrets }: { client: KubeClient; secrets: Store }) {
    this.#client = client;
    this.#secrets = secrets;
    secrets.subscribe(({ type, object: { metadata } }) => {
      if (type === "delete") {
        this.#known.delete(`${metadata?.namespace}/${metadata?.name}`);
      }
    });
  }

  /** What the watch knows; undefined when there is no such Secret. @throws KubeError */
  async read(ref: Ref, signal: AbortSignal): Promise<SharedContent | undefined> {
    const key = `${ref.namespace}/${ref.name}`;
    const seen = this.#secrets.get(ref.namespace, ref.name);
    const known = this.#known.get(key);
    if (known && seen && known.version === versionOf(seen)) {
      this.#known.delete(key);
      this.#known.set(key, known);
      return known;
    }
    return (await this.readData(ref, signal))?.content;
  }

  /** The Secret as it is now, with its data. @throws KubeError */
  async readData(
    ref: Ref,
    signal: AbortSignal,
  ): Promise<{ content: SharedContent; data: Record<string, string> } | undefined> {
    const live = await this.#client.getOrUndefined<SecretObject>(resources.secrets, ref, { signal });
    const key = `${ref.namespace}/${ref.name}`;
    this.#known.delete(key);
    if (!live) {
      return undefined;
    }
    const { data = {} } = live;
    const content = contentOfData(data);
    this.#known.set(key, { ...content, version: versionOf(live) });
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_KNOWN) {
        break;
      }
      this.#known.delete(oldest);
    }
    return { content, data };
  }
}

/** Pure. @param data Base64 by name */
export function contentOfData(data: Readonly<Record<string, string>>): SharedContent {
  const entries = Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1));
  // The name, `=`, the value and its end.
  const tooLong = entries.find(
    ([name, value]) => Buffer.byteLength(name) + Buffer.byteLength(value, "base64") + 2 > MAX_VARIABLE_BYTES,
  )?.[0];
  return {
    digest: createHash("sha256").update(JSON.stringify(entries)).digest("hex"),
    bytes: bytesOfData(data),
    ...(tooLong === undefined ? {} : { tooLong }),
  };
}

function versionOf({ metadata }: KubernetesObject): string {
  return `${metadata?.uid ?? ""}/${metadata?.resourceVersion ?? ""}`;
}

/** The content of Secrets whose variables are resolved, and of those that they refer to. Never logged, nor stored anywhere else. */

import { type KubeClient, type KubernetesObject, resources, type Store } from "@slipway/controller-runtime";

/** Text by key. */
export type SecretContent = Readonly<Record<string, string>>;

interface SecretObject extends KubernetesObject {
  data?: Record<string, string>;
}

/** Reads each version of a watched Secret once; those without a project's label, which no watch reports, at every call. */
export class SecretContents {
  readonly #client: KubeClient;
  readonly #secrets: Store;
  readonly #known = new Map<string, { version: string; content: SecretContent }>();

  /** @param secrets Secrets with the project label, without their data */
  constructor({ client, secrets }: { client: KubeClient; secrets: Store }) {
    this.#client = client;
    this.#secrets = secrets;
    secrets.subscribe(({ type, object: { metadata } }) => {
      if (type === "delete") {
        this.#known.delete(`${metadata?.namespace}/${metadata?.name}`);
      }
    });
  }

  /**
   * The content of a Secret; undefined when it does not exist.
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
      return known.content;
    }
    const live = await this.#client.getOrUndefined<SecretObject>(resources.secrets, ref, { signal });
    if (!live) {
      this.#known.delete(key);
      return undefined;
    }
    const content = Object.fromEntries(
      Object.entries(live.data ?? {}).map(([name, value]) => [
        name,
        Buffer.from(value, "base64").toString("utf8"),
      ]),
    );
    if (seen) {
      this.#known.set(key, { version: versionOf(live), content });
    }
    return content;
  }
}

function versionOf({ metadata }: KubernetesObject): string {
  return `${metadata?.uid ?? ""}/${metadata?.resourceVersion ?? ""}`;
}

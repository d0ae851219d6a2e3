/** The key that names of copies are made with: names are in statuses, and without it would show whether guessed values are right. */

import { randomBytes } from "node:crypto";
import {
  isAlreadyExists,
  type KubeClient,
  type KubernetesObject,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { fieldManagers, labels, MANAGED_BY } from "@slipway/crds";

/** The Secret with the key of an organization, in its namespace. */
const NAME = "slipway-copies-key";
const KEY = "key";
const BYTES = 32;

type SecretObject = KubernetesObject & { data?: Record<string, string> };

/** Creates the key of a namespace when it is needed first, and keeps it in memory. */
export class CopyKeys {
  readonly #client: KubeClient;
  /** By namespace. */
  readonly #known = new Map<string, Buffer>();

  /** @param secrets those of organizations' namespaces, without their data */
  constructor({ client, secrets }: { client: KubeClient; secrets: Store }) {
    this.#client = client;
    secrets.subscribe(({ type, object: { metadata } }) => {
      if (type === "delete" && metadata?.name === NAME) {
        this.#known.delete(metadata.namespace ?? "");
      }
    });
  }

  /** @throws KubeError */
  async keyOf(namespace: string, organizationId: string, signal: AbortSignal): Promise<Buffer> {
    const known = this.#known.get(namespace);
    if (known) {
      return known;
    }
    const secret =
      (await this.#read(namespace, signal)) ?? (await this.#create(namespace, organizationId, signal));
    const key = Buffer.from(secret?.data?.[KEY] ?? "", "base64");
    if (key.length < BYTES) {
      throw new Error(`the Secret ${NAME} of ${namespace} has no key of ${BYTES} bytes`);
    }
    this.#known.set(namespace, key);
    return key;
  }

  #read(namespace: string, signal: AbortSignal): Promise<SecretObject | undefined> {
    return this.#client.getOrUndefined<SecretObject>(
      resources.secrets,
      { namespace, name: NAME },
      { signal },
    );
  }

  async #create(
    namespace: string,
    organizationId: string,
    signal: AbortSignal,
  ): Promise<SecretObject | undefined> {
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: {
        name: NAME,
        namespace,
        labels: { [labels.managedBy]: MANAGED_BY, [labels.organization]: organizationId },
      },
      type: "Opaque",
      immutable: true,
      data: { [KEY]: randomBytes(BYTES).toString("base64") },
    };
    try {
      const options = { fieldManager: fieldManagers.project, signal };
      return await this.#client.create<SecretObject>(resources.secrets, secret, options);
    } catch (error) {
      // Another reconcile was first.
      if (!isAlreadyExists(error)) {
        throw error;
      }
      return this.#read(namespace, signal);
    }
  }
}

/** The authority of the platform's databases: a Secret with its key, and a ConfigMap for the clients that have to trust it. */

import {
  isAlreadyExists,
  isConflict,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import { labels, MANAGED_BY } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { PolicyRule } from "../../rbac.ts";
import { makeAuthority, type Pair } from "./certificates.ts";

/** Name of both, in the platform's namespace. */
export const AUTHORITY = "slipway-database-ca";

/** In the platform's namespace, where the chart creates both, empty. */
export const authorityRules: PolicyRule[] = [
  {
    apiGroups: [""],
    resources: ["secrets", "configmaps"],
    resourceNames: [AUTHORITY],
    verbs: ["get", "patch"],
  },
];

const FIELD_MANAGER = "slipway-database";
const SYSTEM_LABELS = { [labels.managedBy]: MANAGED_BY };

interface Data extends KubernetesObject {
  data?: Record<string, string>;
  immutable?: boolean;
}

const WRITE = { fieldManager: FIELD_MANAGER };

export interface AuthorityDependencies {
  client: KubeClient;
  clock: Clock;
  namespace: string;
}

/**
 * Reads the authority once, and creates it when none exists: it fills the chart's empty Secret, and creates that where it is
 * missing and it may. The authority is never created again, for clients trust this one: a Secret that is filled is immutable.
 */
export class Authority {
  readonly #deps: AuthorityDependencies;
  #pair: Promise<Pair> | undefined;

  constructor(deps: AuthorityDependencies) {
    this.#deps = deps;
  }

  /** @throws KubeError when the apiserver refuses, Error when the Secret has other content */
  current(): Promise<Pair> {
    const pair = this.#pair ?? this.#load();
    this.#pair = pair;
    pair.catch(() => {
      if (this.#pair === pair) {
        this.#pair = undefined;
      }
    });
    return pair;
  }

  async #load(): Promise<Pair> {
    const live = await this.#secret();
    const pair = readPair(live) ?? (await this.#make(live));
    await this.#publish(pair.certificate);
    return pair;
  }

  #secret(): Promise<Data | undefined> {
    const { client, namespace } = this.#deps;
    return client.getOrUndefined<Data>(resources.secrets, { namespace, name: AUTHORITY });
  }

  /** @param live the Secret, without content */
  async #make(live: Data | undefined): Promise<Pair> {
    const { client, clock, namespace } = this.#deps;
    const pair = await makeAuthority(clock.now());
    const data = { "tls.crt": encode(pair.certificate), "tls.key": encode(pair.key) };
    const ref = { namespace, name: AUTHORITY };
    try {
      if (live) {
        const { uid, resourceVersion } = live.metadata ?? {};
        const filled = { metadata: { uid, resourceVersion }, immutable: true, data };
        await client.patch(resources.secrets, ref, filled, WRITE);
      } else {
        const secret: Data = { metadata: { ...ref, labels: SYSTEM_LABELS }, immutable: true, data };
        await client.create(resources.secrets, secret, WRITE);
      }
      return pair;
    } catch (error) {
      const other = isAlreadyExists(error) || isConflict(error) ? readPair(await this.#secret()) : undefined;
      if (other) {
        return other;
      }
      throw error;
    }
  }

  async #publish(certificate: string): Promise<void> {
    const { client, namespace } = this.#deps;
    const ref = { namespace, name: AUTHORITY };
    const live = await client.getOrUndefined<Data>(resources.configMaps, ref);
    const data = { "ca.crt": certificate };
    if (!live) {
      await client.create(resources.configMaps, { metadata: { ...ref, labels: SYSTEM_LABELS }, data }, WRITE);
    } else if (live.data?.["ca.crt"] !== certificate) {
      await client.patch(resources.configMaps, ref, { data }, WRITE);
    }
  }
}

/** @returns undefined when the Secret does not exist, or is empty. @throws Error when it has other content */
function readPair(secret: Data | undefined): Pair | undefined {
  if (Object.keys(secret?.data ?? {}).length === 0) {
    return undefined;
  }
  const text = (key: string) => Buffer.from(secret?.data?.[key] ?? "", "base64").toString("utf8");
  const [certificate, key] = [text("tls.crt"), text("tls.key")];
  if (!certificate.includes("BEGIN CERTIFICATE") || !key.includes("PRIVATE KEY")) {
    throw new Error(`the Secret ${AUTHORITY} has no certificate with its key`);
  }
  return { certificate, key };
}

const encode = (text: string) => Buffer.from(text).toString("base64");

/** Keeps the Secret with which an organization's nodes pull its built images: created before the first pull, renewed before it expires. */

import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  BUILDS_PULL_SECRET,
  fieldManagers,
  labels,
  MANAGED_BY,
  mintRegistryPassword,
  registryKeySet,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { RetryableError } from "../../reconcile-errors.ts";
import { RENEW_AT } from "../../registry/login.ts";

export interface BuiltPullOptions {
  client: KubeClient;
  clock: Clock;
  /** `host` or `host:port` of the builds' registry. */
  host: () => string;
  /** PEM private key that signs its tokens. */
  registryKey: () => string;
}

/** How long a password is valid, and after how long it is renewed. */
const LIFETIME_S = 30 * 86_400;
const RENEW_MS = 15 * 86_400_000;
/** For this long a Secret that was read counts as unchanged. */
const TRUSTED_MS = 300_000;

/** The key and host that a password was created for: it is replaced when they change. */
const MADE_FOR = "slipway.dev/made-for";

export class BuiltPull {
  readonly #options: BuiltPullOptions;
  /** By namespace: until when its Secret need not be read. */
  readonly #trusted = new Map<string, { until: number; madeFor: string; renewAt: number }>();

  constructor(options: BuiltPullOptions) {
    this.#options = options;
  }

  /** `host` or `host:port` of the builds' registry. */
  get host(): string {
    return this.#options.host();
  }

  /**
   * @returns milliseconds until it is to be called again
   * @throws RetryableError about `RegistryReady` when a Secret of its name is somebody else's
   */
  async ensure(
    { namespace, organizationId }: { namespace: string; organizationId: string },
    signal: AbortSignal,
  ): Promise<number> {
    const { client, clock, host, registryKey } = this.#options;
    const now = clock.now().getTime();
    const madeFor = `${host()} ${registryKeySet(registryKey()).keys[0]?.kid}`;
    const trusted = this.#trusted.get(namespace);
    if (trusted?.madeFor === madeFor && trusted.until > now && trusted.renewAt > now) {
      return trusted.renewAt - now;
    }
    const name = BUILDS_PULL_SECRET;
    const live = await client.getOrUndefined<KubernetesObject>(
      resources.secrets,
      { namespace, name },
      { signal },
    );
    if (live && live.metadata?.labels?.[labels.managedBy] !== MANAGED_BY) {
      const message = `A Secret ${name} that is not the platform's is in the way.`;
      // Nobody watches what has no label of ours: it is read again until it is out of the way.
      throw new RetryableError("ChildConflict", message, { condition: "RegistryReady" });
    }
    const marks = live?.metadata?.annotations ?? {};
    let renewAt = marks[MADE_FOR] === madeFor ? Date.parse(marks[RENEW_AT] ?? "") || 0 : 0;
    if (renewAt <= now) {
      renewAt = now + RENEW_MS;
      const secret = this.#secret({ namespace, organizationId, madeFor, renewAt });
      await client.apply(resources.secrets, secret, {
        fieldManager: fieldManagers.project,
        force: true,
        signal,
      });
    }
    this.#trusted.set(namespace, { until: now + TRUSTED_MS, madeFor, renewAt });
    return renewAt - now;
  }

  #secret(of: {
    namespace: string;
    organizationId: string;
    madeFor: string;
    renewAt: number;
  }): KubernetesObject {
    const { clock, host, registryKey } = this.#options;
    const { namespace, organizationId, madeFor, renewAt } = of;
    const username = organizationId;
    const password = mintRegistryPassword(registryKey(), organizationId, LIFETIME_S, clock.now());
    const auth = Buffer.from(`${username}:${password}`).toString("base64");
    const config = JSON.stringify({ auths: { [host()]: { username, password, auth } } });
    return {
      apiVersion: "v1",
      kind: "Secret",
      metadata: {
        name: BUILDS_PULL_SECRET,
        namespace,
        labels: { [labels.managedBy]: MANAGED_BY, [labels.organization]: organizationId },
        annotations: { [MADE_FOR]: madeFor, [RENEW_AT]: new Date(renewAt).toISOString() },
      },
      type: "kubernetes.io/dockerconfigjson",
      // Not stringData: server-side apply does not own what that writes.
      data: { ".dockerconfigjson": Buffer.from(config).toString("base64") },
    } as KubernetesObject;
  }
}

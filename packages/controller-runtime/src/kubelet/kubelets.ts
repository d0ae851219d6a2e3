/** Requests summaries from kubelets: one connection a node, verified, with a token that has no other rights. */

import { readFile } from "node:fs/promises";
import type { Clock } from "@slipway/process";
import type { ClusterConfig } from "../client/cluster-config.ts";
import type { Credentials } from "../client/credentials.ts";
import { KubeError } from "../client/errors.ts";
import { Transport } from "../client/transport.ts";
import {
  lacksContainers,
  type PodReading,
  podReadingsOf,
  type Reading,
  readingsOf,
  type Summary,
} from "./summary.ts";

/** Where a kubelet listens. */
export interface KubeletAddress {
  readonly host: string;
  readonly port: number;
}

/** Source of bearer tokens for kubelets. */
export interface TokenSource {
  /** @throws when none is available */
  get(): Promise<string>;
  /** Forgets the token that a kubelet refused. */
  invalidate(): void;
}

/** Which authorities of kubelets' certificates are trusted. */
export interface KubeletTrust {
  /** PEM; undefined for the authorities built into Node. Read again now and then, since files rotate. */
  ca(): Promise<string | undefined>;
  /** False accepts every certificate: for clusters whose kubelets sign their own. */
  verify: boolean;
}

export interface KubeletOptions {
  trust: KubeletTrust;
  token: TokenSource;
  clock: Clock;
  userAgent: string;
  /** Name of the container that is read. */
  container: string;
}

/** Longest wait for an answer, and longest silence within it, in milliseconds. */
const TIMEOUT_MS = 5_000;
/** Bytes of an answer: some 400 for each container. */
const LIMIT_BYTES = 16 * 1024 * 1024;
/** How long credentials are used before the authority's file is read again, in milliseconds. */
const TRUST_MS = 60_000;

/** Trust by the settings: a file, else the authority of the cluster's kubeconfig. */
export function kubeletTrust(
  settings: { caFile?: string; verify: boolean },
  cluster: ClusterConfig | { url: string },
): KubeletTrust {
  const own = "url" in cluster ? null : cluster.getCurrentCluster();
  return {
    verify: settings.verify,
    async ca() {
      const file = settings.caFile ?? own?.caFile;
      if (file !== undefined) {
        return readFile(file, "utf8");
      }
      return own?.caData === undefined ? undefined : Buffer.from(own.caData, "base64").toString("utf8");
    },
  };
}

/** Kubelets of a cluster; each keeps one connection while it is in use. */
export class Kubelets {
  readonly #options: KubeletOptions;
  readonly #transports = new Map<string, Transport>();
  readonly #long = new Set<string>();
  #credentials: { value: Credentials; at: number } | undefined;

  constructor(options: KubeletOptions) {
    this.#options = options;
  }

  /**
   * Current readings of a kubelet's containers, by pod uid.
   * @throws KubeError, or what the token's source throws
   */
  async read(address: KubeletAddress, signal: AbortSignal): Promise<Map<string, Reading>> {
    const origin = originOf(address);
    const { container } = this.#options;
    const summary = await this.#request(origin, !this.#long.has(origin), signal);
    if (this.#long.has(origin) || !lacksContainers(summary)) {
      return readingsOf(summary, container);
    }
    this.#long.add(origin);
    return readingsOf(await this.#request(origin, false, signal), container);
  }

  /**
   * Current readings of a kubelet's pods, by uid: the container, and volumes.
   * @throws KubeError, or what the token's source throws
   */
  async readPods(address: KubeletAddress, signal: AbortSignal): Promise<Map<string, PodReading>> {
    return podReadingsOf(await this.summary(address, signal), this.#options.container);
  }

  /**
   * All that a kubelet reports of its pods.
   * @throws KubeError, or what the token's source throws
   */
  async summary(address: KubeletAddress, signal: AbortSignal): Promise<Summary> {
    return this.#request(originOf(address), false, signal);
  }

  /** Ends the connection to a kubelet. */
  async close(address: KubeletAddress): Promise<void> {
    const origin = originOf(address);
    const transport = this.#transports.get(origin);
    this.#transports.delete(origin);
    this.#long.delete(origin);
    await transport?.close();
  }

  async #request(origin: string, short: boolean, signal: AbortSignal): Promise<Summary> {
    const path = "/stats/summary";
    const bytes = await this.#transport(origin).bytes(
      { method: "GET", path, query: short ? { only_cpu_and_memory: true } : {}, signal },
      LIMIT_BYTES,
    );
    try {
      const summary: unknown = JSON.parse(bytes.toString("utf8"));
      if (typeof summary === "object" && summary !== null) {
        return summary;
      }
      throw new TypeError("not an object");
    } catch (cause) {
      const message = `GET ${path}: no summary, or more than ${LIMIT_BYTES} bytes`;
      throw new KubeError({ status: 0, reason: "InvalidResponse", message, cause });
    }
  }

  #transport(origin: string): Transport {
    const kept = this.#transports.get(origin);
    if (kept !== undefined) {
      return kept;
    }
    const { clock, userAgent } = this.#options;
    const credentials = {
      server: origin,
      get: () => this.#credentialsNow(),
      invalidate: () => {
        this.#credentials = undefined;
        this.#options.token.invalidate();
      },
    };
    const transport = new Transport({ credentials, clock, userAgent, timeoutMs: TIMEOUT_MS, connections: 1 });
    this.#transports.set(origin, transport);
    return transport;
  }

  /** The same object for as long as nothing changes: connections are kept by it. */
  async #credentialsNow(): Promise<Credentials> {
    const { clock, trust, token } = this.#options;
    const kept = this.#credentials;
    const bearer = `Bearer ${await token.get()}`;
    if (kept && clock.monotonic() - kept.at < TRUST_MS && kept.value.headers.authorization === bearer) {
      return kept.value;
    }
    const ca = await trust.ca();
    const tls = {
      ...(ca === undefined ? {} : { ca }),
      ...(trust.verify ? {} : { rejectUnauthorized: false }),
    };
    const value = { headers: { authorization: bearer }, tls };
    this.#credentials = { value, at: clock.monotonic() };
    return value;
  }
}

const originOf = ({ host, port }: KubeletAddress): string =>
  `https://${host.includes(":") ? `[${host}]` : host}:${port}`;

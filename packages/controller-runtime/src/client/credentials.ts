import type { RequestOptions } from "node:https";
import type { Clock } from "@slipway/process";
import type { ClusterConfig } from "./cluster-config.ts";

/** TLS material and headers that authenticate one request. */
export interface Credentials {
  headers: Record<string, string>;
  tls: {
    ca?: RequestOptions["ca"];
    cert?: RequestOptions["cert"];
    key?: RequestOptions["key"];
    passphrase?: string;
    servername?: string;
    rejectUnauthorized?: boolean;
  };
}

/** Where requests go and what authenticates them. */
export interface CredentialSource {
  /** Base URL, without a trailing slash. */
  readonly server: string;
  readonly proxyUrl?: string;
  get(): Promise<Credentials>;
  /** Forgets what is cached, after a 401. */
  invalidate(): void;
}

/** How long credentials are reused; client-node itself rereads a token file after 60 s, and exec results as they expire. */
const CACHE_MS = 15_000;

/** Credentials of a cluster: client certificates, tokens, token files (a pod's service account), exec plugins. */
export function clusterCredentials(config: ClusterConfig, clock: Clock): CredentialSource {
  const cluster = config.getCurrentCluster();
  if (!cluster) {
    throw new Error("no Kubernetes cluster configured");
  }
  let cached: { value: Promise<Credentials>; at: number } | undefined;
  return {
    server: cluster.server.replace(/\/+$/, ""),
    ...(cluster.proxyUrl ? { proxyUrl: cluster.proxyUrl } : {}),
    get() {
      const now = clock.monotonic();
      if (!cached || now - cached.at > CACHE_MS) {
        const entry = { value: resolve(config), at: now };
        cached = entry;
        entry.value.catch(() => {
          if (cached === entry) {
            cached = undefined;
          }
        });
      }
      return cached.value;
    },
    invalidate() {
      cached = undefined;
    },
  };
}

async function resolve(config: ClusterConfig): Promise<Credentials> {
  const options: RequestOptions = { headers: {} };
  await config.applyToHTTPSOptions(options);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    if (typeof value === "string") {
      headers[name.toLowerCase()] = value.trim();
    }
  }
  if (options.auth) {
    headers.authorization = `Basic ${Buffer.from(options.auth).toString("base64")}`;
  }
  return {
    headers,
    tls: {
      ...(options.ca ? { ca: options.ca } : {}),
      ...(options.cert ? { cert: options.cert } : {}),
      ...(options.key ? { key: options.key } : {}),
      ...(options.passphrase ? { passphrase: options.passphrase } : {}),
      ...(options.servername ? { servername: options.servername } : {}),
      ...(options.rejectUnauthorized === false ? { rejectUnauthorized: false } : {}),
    },
  };
}

/** No credentials at all: for a fake apiserver, or for one behind `kubectl proxy`. */
export function anonymousCredentials(server: string): CredentialSource {
  return {
    server: server.replace(/\/+$/, ""),
    get: () => Promise.resolve({ headers: {}, tls: {} }),
    invalidate: () => {},
  };
}

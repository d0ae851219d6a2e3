import { createHash } from "node:crypto";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import type { Credentials } from "./credentials.ts";

interface Pools {
  /** The credentials object last seen; the same object means the same material. */
  credentials: Credentials;
  fingerprint: string;
  requests: Dispatcher;
  watches: Dispatcher;
}

/** Keep-alive connections to one apiserver: those of requests are reused, each watch or stream has one of its own. */
export class ConnectionPools {
  readonly #proxyUrl: string | undefined;
  readonly #connections: number;
  #pools: Pools | undefined;

  /** @param connections kept for requests other than watches and streams */
  constructor(proxyUrl: string | undefined, connections = 32) {
    this.#proxyUrl = proxyUrl;
    this.#connections = connections;
  }

  /** The connection pools of these credentials; new ones when the TLS material changed. */
  of(credentials: Credentials): Pools {
    const old = this.#pools;
    if (old?.credentials === credentials) {
      return old;
    }
    const fingerprint = createHash("sha256").update(JSON.stringify(credentials.tls)).digest("hex");
    if (old?.fingerprint === fingerprint) {
      old.credentials = credentials;
      return old;
    }
    const pool = (connections: number | null): Dispatcher => {
      const common = {
        // One HTTP/1.1 connection a request: a dead one is noticed by its own timeout and takes nothing else along.
        allowH2: false,
        connections,
        pipelining: 1,
        keepAliveTimeout: 55_000,
        keepAliveMaxTimeout: 55_000,
      };
      const connect = { ...credentials.tls, timeout: 10_000, keepAlive: true, keepAliveInitialDelay: 30_000 };
      const uri = this.#proxyUrl;
      return uri
        ? new ProxyAgent({ ...common, uri, requestTls: connect } as ProxyAgent.Options)
        : new Agent({ ...common, connect } as Agent.Options);
    };
    this.#pools = {
      credentials,
      fingerprint,
      requests: pool(this.#connections),
      watches: pool(null),
    };
    // Requests under way on the old pools finish; watches end when the server ends them.
    if (old) {
      void Promise.allSettled([old.requests.close(), old.watches.close()]);
    }
    return this.#pools;
  }

  /** Closes every connection. */
  async close(): Promise<void> {
    const pools = this.#pools;
    this.#pools = undefined;
    if (pools) {
      await Promise.all([pools.requests.destroy(), pools.watches.destroy()]);
    }
  }
}

import type { Clock, Logger, Random } from "@slipway/process";
import type { Tracing } from "@slipway/process/tracing";
import type { Registry } from "prom-client";
import type { Indexer } from "../cache/index-table.ts";
import type { WatchedNamespaces } from "../cache/namespace-reflectors.ts";
import type { KubeClient } from "../client/client.ts";
import type { ClusterConfig } from "../client/cluster-config.ts";
import type { KubernetesObject } from "../client/types.ts";
import type { ClockReference } from "./clock-guard.ts";
import type { ShardLease } from "./shard-rivals.ts";

export interface ManagerOptions {
  /** Where the cluster is; or a client made elsewhere. */
  cluster: ClusterConfig | { url: string };
  log: Logger;
  /** Traces of reconciles that act on what was traced before, and of their writes; none without it. */
  tracing?: Tracing;
  /** Annotation with the `traceparent` of what last wrote an object, such as `example.com/traceparent`. */
  traceparentAnnotation?: string;
  /** Such as `example.com/website-operator`: the reporting controller of events, and the user agent. */
  name: string;
  /** What metrics and span attributes begin with that are not of controller-runtime: `controller_runtime` unless given. */
  telemetryPrefix?: string;
  /** Unique name of this process: the pod's. */
  identity: string;
  /** Without it, this process acts alone. */
  leaderElection?: {
    namespace: string;
    name: string;
    leaseDurationMs?: number;
    renewDeadlineMs?: number;
    retryPeriodMs?: number;
    /** The shard that this process leads and reconciles; everything without it. */
    shard?: ShardLease;
  };
  /** Port of `/metrics`, `/healthz`, `/readyz`; 0 picks one, absent serves none. */
  port?: number;
  host?: string;
  /** How long reconciles under way may take to end on stop: 20,000. */
  gracePeriodMs?: number;
  registry?: Registry;
  clock?: Clock;
  /** Clocks that this process's must agree with for it to lead; it trusts its own without them. */
  clockReferences?: (client: KubeClient) => readonly ClockReference[];
  /** From which difference on it does not lead, in milliseconds: 30,000. */
  clockSkewLimitMs?: number;
  random?: Random;
  /** Ends the process when the lease is lost; `process.exit` unless given. */
  exit?: (code: number) => void;
}

export interface StoreRequest<T extends KubernetesObject> {
  namespace?: string;
  /** Reads in these alone, in each for itself: for what the process may not read in all namespaces. */
  namespaces?: WatchedNamespaces;
  labelSelector?: string;
  fieldSelector?: string;
  /** Nothing but `metadata` is read, for objects whose content is large or secret. */
  metadataOnly?: boolean;
  indexers?: Record<string, Indexer<T>>;
  transform?: (object: T) => T;
}

/** Something else that runs as long as the process, or as long as it leads. */
export interface Runnable {
  name: string;
  /** Only on the leader; true unless given. */
  leaderOnly?: boolean;
  /** On the leader of every shard; on that of the first one alone unless given. */
  everyShard?: boolean;
  /** Returns when the signal aborts. Throwing ends the process: what must continue catches its own errors. */
  run(signal: AbortSignal): Promise<void>;
}

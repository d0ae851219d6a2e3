/** One process of the operator: its clock, its connections and its memory. It can be killed, frozen and thawed. */

import {
  compareResourceVersions,
  type KubernetesObject,
  type Resource,
  Store,
  type StoreOptions,
} from "@slipway/controller-runtime";
import type { Clock, Timer } from "@slipway/process";
import type { RunCluster } from "../../operator/src/jobs/runs/cluster.ts";
import type { Apiserver, Change } from "./apiserver.ts";
import { type CallFaults, ModelConnection, selector } from "./connection.ts";
import { freeze } from "./merge.ts";
import type { Stored } from "./objects.ts";
import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";

export interface ProcessOptions {
  timeline: Timeline;
  api: Apiserver;
  chance: Chance;
  faults: CallFaults;
  /** Milliseconds between a change and its arrival here. */
  watchDelay: () => number;
  /** Milliseconds by which the wall clock is ahead. */
  clockOffset: number;
  /** Called once when it is killed by a fault. */
  onKilled: () => void;
  /** Replaces the connection to the cluster: a faulty variant for a test. */
  wrap?: (cluster: RunCluster) => RunCluster;
}

interface Feed {
  readonly resource: Resource;
  readonly store: Store;
  readonly selects: (object: Stored) => boolean;
  pending: Change[];
  planned: boolean;
}

export class ModelProcess {
  readonly clock: Clock;
  readonly cluster: RunCluster;
  readonly #options: ProcessOptions;
  readonly #feeds: Feed[] = [];
  readonly #deferred: (() => void)[] = [];
  #alive = true;
  #frozen = false;
  #wasFrozen = false;
  clockOffset: number;

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.clockOffset = options.clockOffset;
    const { timeline } = options;
    const startedAt = timeline.now;
    this.clock = {
      now: () => new Date(timeline.now + this.clockOffset),
      monotonic: () => timeline.now - startedAt,
      setTimeout: (callback, ms) => this.#timer(callback, ms),
    };
    const cluster = new ModelConnection(options, this).cluster();
    this.cluster = options.wrap?.(cluster) ?? cluster;
  }

  get alive(): boolean {
    return this.#alive;
  }

  get frozen(): boolean {
    return this.#frozen;
  }

  /** Whether it was frozen before. */
  get wasFrozen(): boolean {
    return this.#wasFrozen;
  }

  /** Ends it immediately: what it waits for never comes. */
  kill(): void {
    if (!this.#alive) {
      return;
    }
    this.#alive = false;
    this.#feeds.length = 0;
    this.#deferred.length = 0;
    this.#options.onKilled();
  }

  freeze(): void {
    this.#frozen = true;
    this.#wasFrozen = true;
  }

  /** Continues: all that arrived meanwhile is delivered together. */
  thaw(): void {
    if (!this.#frozen) {
      return;
    }
    this.#frozen = false;
    for (const run of this.#deferred.splice(0)) {
      this.wake(run);
    }
  }

  /** A store that is fed by a watch with a delay. It is empty until {@link sync}. */
  store<T extends KubernetesObject>(
    resource: Resource,
    { labelSelector, transform, ...options }: StoreOptions<T> & { labelSelector?: string } = {},
  ): Store<T> {
    // Nothing that was handed out may be changed, so nothing that a store keeps either.
    const keep = transform ?? ((object: T) => object);
    const store = new Store<T>({
      ...options,
      transform: (object) => freeze(keep(object)),
      clock: this.clock,
    });
    const selects = selector(labelSelector);
    this.#feeds.push({ resource, store: store as unknown as Store, selects, pending: [], planned: false });
    return store;
  }

  /** Lists everything again, as after a restart or a lost watch. */
  sync(): void {
    for (const feed of this.#feeds) {
      feed.pending = [];
      const objects = this.#options.api.list(feed.resource).filter(feed.selects);
      this.wake(() => feed.store.replace(objects as KubernetesObject[], this.#options.api.version));
    }
  }

  /** A change was committed: it arrives here later. */
  observe(change: Change): void {
    for (const feed of this.#feeds) {
      if (feed.resource !== change.resource || !feed.selects(change.object)) {
        continue;
      }
      feed.pending.push(change);
      if (feed.planned) {
        continue;
      }
      feed.planned = true;
      this.#options.timeline.after(this.#options.watchDelay(), () => this.wake(() => this.#deliver(feed)));
    }
  }

  #deliver(feed: Feed): void {
    feed.planned = false;
    const changes = feed.pending;
    feed.pending = [];
    for (const { type, object } of changes) {
      // A list may have been ahead of the events that the watch still had to deliver.
      const known = feed.store.resourceVersion;
      const version = object.metadata.resourceVersion;
      if (known === undefined || compareResourceVersions(version, known) <= 0) {
        continue;
      }
      if (type === "delete") {
        feed.store.remove(object as KubernetesObject);
      } else {
        feed.store.upsert(object as KubernetesObject);
      }
    }
  }

  #timer(callback: () => void, ms: number): Timer {
    const planned = this.#options.timeline.after(ms, () => this.wake(callback));
    return planned;
  }

  /** Runs code of the process: now, after it was thawed, or never. */
  wake(run: () => void): void {
    if (!this.#alive) {
      return;
    }
    if (this.#frozen) {
      this.#deferred.push(run);
      return;
    }
    this.#options.timeline.touch();
    run();
  }
}

/** One process of the operator: its clock, its connections and its memory. It can be killed, frozen and thawed. */

import {
  compareResourceVersions,
  type KubernetesObject,
  type ObjectRef,
  type Resource,
  Store,
  type StoreOptions,
} from "@slipway/controller-runtime";
import type { Clock, Timer } from "@slipway/process";
import type { RunCluster } from "../../operator/src/jobs/runs/cluster.ts";
import { type Apiserver, type Change, type NewObject, refusal } from "./apiserver.ts";
import { freeze } from "./merge.ts";
import type { Stored } from "./objects.ts";
import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";

/** Faults of one call; each is a probability. */
export interface CallFaults {
  /** The process is killed before a write is sent, after it is committed, and after its answer. */
  killBefore: number;
  killCommitted: number;
  killAnswered: number;
  /** Nothing is sent, or the answer is lost: the caller cannot distinguish them. */
  unsent: number;
  unanswered: number;
  /** 429 or 500: nothing is done. */
  refused: number;
  /** The answer takes seconds. */
  slow: number;
}

export const NO_CALL_FAULTS: CallFaults = {
  killBefore: 0,
  killCommitted: 0,
  killAnswered: 0,
  unsent: 0,
  unanswered: 0,
  refused: 0,
  slow: 0,
};

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
    const cluster = this.#connection();
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

  #connection(): RunCluster {
    const { api } = this.#options;
    const found = <T>(object: Stored | undefined) => object as unknown as T;
    return {
      getOrUndefined: <T>(resource: Resource, ref: ObjectRef, { signal }: { signal?: AbortSignal } = {}) =>
        this.#call<T | undefined>("read", () => found<T | undefined>(api.get(resource, ref)), signal),
      listAll: <T>(
        resource: Resource,
        options: { namespace?: string; labelSelector?: string; signal?: AbortSignal } = {},
      ) => {
        const selects = selector(options.labelSelector);
        return this.#call<T[]>(
          "read",
          () =>
            api
              .list(resource)
              .filter(({ metadata }) => !options.namespace || metadata.namespace === options.namespace)
              .filter(selects)
              .map((object) => found<T>(object)),
          options.signal,
        );
      },
      create: <T>(resource: Resource, object: T, { signal }: { signal?: AbortSignal } = {}) =>
        this.#call<T>("write", () => found<T>(api.create(resource, object as NewObject)), signal),
      patch: <T>(
        resource: Resource,
        ref: ObjectRef,
        patch: unknown,
        options: { signal?: AbortSignal; subresource?: string; type?: string } = {},
      ) => {
        if ((options.type ?? "merge") !== "merge") {
          throw new TypeError("the model merges patches only");
        }
        return this.#call<T>(
          "write",
          () => found<T>(api.patch(resource, ref, patch, options)),
          options.signal,
        );
      },
      delete: (resource, ref, { signal, ...options } = {}) =>
        this.#call<boolean>(
          "write",
          () => {
            if (!api.get(resource, ref)) {
              return false;
            }
            api.delete(resource, ref, options);
            return true;
          },
          signal,
        ),
    };
  }

  #call<T>(kind: "read" | "write", run: () => T, signal: AbortSignal | undefined): Promise<T> {
    const { timeline, chance, faults } = this.#options;
    const write = kind === "write";
    return new Promise<T>((resolve, reject) => {
      if (!this.#alive) {
        return;
      }
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      if (write && chance.happens(faults.killBefore)) {
        this.kill();
        return;
      }
      const fate = chance.happens(faults.unsent)
        ? "unsent"
        : chance.happens(faults.refused)
          ? "refused"
          : chance.happens(faults.unanswered)
            ? "unanswered"
            : "answered";
      const [out, back] = [chance.between(1, 15), chance.between(1, 15)];
      const delay = chance.happens(faults.slow) ? chance.between(500, 5_000) : 0;
      const answer = (respond: () => void, ms: number) =>
        timeline.after(ms, () => this.wake(signal?.aborted ? () => reject(signal.reason) : respond));
      timeline.after(out + (chance.happens(0.5) ? delay : 0), () => {
        if (fate === "unsent") {
          answer(() => reject(noAnswer()), back);
          return;
        }
        if (fate === "refused") {
          answer(() => reject(refusal(500, "InternalError", "etcd has no leader")), back);
          return;
        }
        let respond: () => void;
        try {
          const result = run();
          respond = fate === "unanswered" ? () => reject(noAnswer()) : () => resolve(result);
        } catch (error) {
          respond = () => reject(error);
        }
        if (write && chance.happens(faults.killCommitted)) {
          this.kill();
        }
        const killed = write && chance.happens(faults.killAnswered);
        answer(
          () => {
            respond();
            if (killed) {
              timeline.after(chance.between(0, 5), () => this.kill());
            }
          },
          back + (chance.happens(0.5) ? delay : 0),
        );
      });
    });
  }
}

function noAnswer(): Error {
  return refusal(0, "NetworkError", "no answer came");
}

/** Reads `key=value` and `key` label selectors. */
function selector(text: string | undefined): (object: Stored) => boolean {
  if (text === undefined) {
    return () => true;
  }
  const terms = text.split(",").map((term) => term.split("="));
  return ({ metadata }) =>
    terms.every(([key = "", value]) => {
      const found = metadata.labels?.[key];
      return value === undefined ? found !== undefined : found === value;
    });
}

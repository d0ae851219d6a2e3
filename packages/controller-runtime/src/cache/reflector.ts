import { type Clock, type Random, sleep, systemClock } from "@slipway/process";
import type { KubeClient } from "../client/client.ts";
import { isGone, KubeError } from "../client/errors.ts";
import { pageSizeOf, withType } from "../client/requests.ts";
import type { KubernetesList, KubernetesObject, Resource } from "../client/types.ts";
import { Backoff } from "../controller/rate-limiters.ts";
import type { Store } from "./store.ts";
import { fed, parseWatchEvent, splitLines, Watchdog, type WatchEvent } from "./watch-stream.ts";

/** What a reflector reports of itself, for logs and metrics. */
export interface ReflectorEvents {
  /** A whole list was received. */
  onList?: (info: { resource: Resource; items: number; durationMs: number; reason: RelistReason }) => void;
  /** A watch ended, normally or not. */
  onWatchEnd?: (info: { resource: Resource; reason: string }) => void;
  /** Something failed and will be tried again in `delayMs`. */
  onError?: (info: { resource: Resource; error: unknown; delayMs: number }) => void;
}

/** Why a list was made. */
export type RelistReason = "start" | "gone" | "unparsable" | "error";

export interface ReflectorOptions<T extends KubernetesObject> {
  client: KubeClient;
  resource: Resource;
  store: Store<T>;
  /** One namespace; all when absent. */
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Lists and watches `metadata` alone: the store's objects have nothing else. */
  metadataOnly?: boolean;
  clock?: Clock;
  random?: Random;
  /** Items a page: 500, or 50 of metadata alone, for resources with large objects. */
  pageSize?: number;
  /** Longest wait for a page, in milliseconds; the client's own unless given. */
  listTimeoutMs?: number;
  /** Bounds of the random time after which a watch is opened again, in milliseconds: 5 to 10 minutes. */
  watchTimeoutMs?: readonly [number, number];
  /** Silence (bookmarks come each minute) after which a watch counts as dead, in milliseconds: 150,000. */
  idleTimeoutMs?: number;
  events?: ReflectorEvents;
}

/** How one watch ended, and so what comes next. */
type WatchEnd =
  | { next: "watch"; reason: string; backoff: boolean; error?: unknown }
  | { next: "list"; reason: RelistReason; backoff: boolean; error?: unknown };

/** A watch that lasted this long was healthy: the backoff starts over. */
const HEALTHY_MS = 30_000;

/**
 * Keeps a {@link Store} equal to the apiserver: lists by pages, then watches, and starts over when it must. It never
 * ends: every failure is tried again after a jittered backoff of 0.25 to 30 s, until the signal aborts.
 */
export class Reflector<T extends KubernetesObject = KubernetesObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #backoff: Backoff;
  /** Where the next watch starts. */
  #version = "";

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#backoff = new Backoff({ baseMs: 250, maxMs: 30_000 }, this.#random);
  }

  get store(): Store<T> {
    return this.#options.store;
  }

  get resource(): Resource {
    return this.#options.resource;
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    let relist: RelistReason | undefined = "start";
    while (!signal.aborted) {
      try {
        if (relist) {
          await this.#list(relist, signal);
        }
        relist = undefined;
      } catch (error) {
        await this.#pause(error, signal);
        continue;
      }
      const end = await this.#watch(signal);
      if (signal.aborted) {
        return;
      }
      this.#options.events?.onWatchEnd?.({ resource: this.resource, reason: end.reason });
      if (end.next === "list") {
        relist = end.reason;
      }
      if (end.backoff) {
        await this.#pause(end.error ?? new Error(end.reason), signal);
      }
    }
  }

  async #list(reason: RelistReason, signal: AbortSignal): Promise<void> {
    const { client, resource, store, metadataOnly, listTimeoutMs } = this.#options;
    const {
      namespace,
      labelSelector,
      fieldSelector,
      pageSize = pageSizeOf({ metadataOnly }),
    } = this.#options;
    const started = this.#clock.monotonic();
    const selection = { namespace, labelSelector, fieldSelector, metadataOnly, signal };
    const items: T[] = [];
    let version = "";
    let next: string | undefined;
    do {
      // No resourceVersion: the newest, so that a list never goes back in time.
      const page: KubernetesList<T> = await client.list<T>(resource, {
        ...selection,
        timeoutMs: listTimeoutMs,
        limit: pageSize,
        ...(next ? { continue: next } : {}),
      });
      // Reduced page by page: all of them together may not fit into memory.
      for (const item of page.items) {
        items.push(store.transform(withType(item, resource)));
      }
      version = page.metadata.resourceVersion ?? "";
      next = page.metadata.continue;
    } while (next);
    if (version === "") {
      throw new Error(`list of ${resource.plural} has no resourceVersion`);
    }
    // Aborted meanwhile: the store may have forgotten the namespace.
    signal.throwIfAborted();
    store.replace(items, version, { transformed: true, namespace });
    this.#version = version;
    const durationMs = this.#clock.monotonic() - started;
    this.#options.events?.onList?.({ resource, items: items.length, durationMs, reason });
  }

  async #watch(signal: AbortSignal): Promise<WatchEnd> {
    const abort = new AbortController();
    const stop = () => abort.abort();
    signal.addEventListener("abort", stop, { once: true });
    const watchdog = new Watchdog(this.#clock, this.#options.idleTimeoutMs ?? 150_000, stop);
    const started = this.#clock.monotonic();
    let received = false;
    try {
      const stream = await this.#open(abort.signal);
      watchdog.feed();
      for await (const line of splitLines(fed(stream, watchdog))) {
        const end = this.#take(parseWatchEvent<T>(line));
        if (end) {
          return end;
        }
        received = true;
        this.#backoff.reset();
      }
      return this.#ended(received, started);
    } catch (error) {
      if (watchdog.barked) {
        return { next: "watch", reason: "idle", backoff: false };
      }
      // Expired (410) when the watch was opened, or another rejection; everything else is a cut connection.
      if (isGone(error)) {
        return { next: "list", reason: "gone", backoff: false };
      }
      if (error instanceof KubeError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        return { next: "list", reason: "error", backoff: true, error };
      }
      return received
        ? { next: "watch", reason: "cut", backoff: false }
        : { next: "watch", reason: "error", backoff: true, error };
    } finally {
      watchdog.stop();
      signal.removeEventListener("abort", stop);
      abort.abort();
    }
  }

  #open(signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    const { client, resource, namespace, labelSelector, fieldSelector, metadataOnly, watchTimeoutMs } =
      this.#options;
    const [shortest, longest] = watchTimeoutMs ?? [300_000, 600_000];
    const timeoutSeconds = Math.max(1, Math.round((shortest + this.#random() * (longest - shortest)) / 1000));
    return client.watch(resource, {
      namespace,
      labelSelector,
      fieldSelector,
      metadataOnly,
      resourceVersion: this.#version,
      timeoutSeconds,
      signal,
    });
  }

  /** Applies one event to the store; says how the watch ends when it must. */
  #take(event: WatchEvent<T>): WatchEnd | undefined {
    const { store } = this.#options;
    switch (event.type) {
      case "upsert":
        store.upsert(withType(event.object, this.resource));
        this.#version = event.object.metadata?.resourceVersion ?? this.#version;
        return undefined;
      case "delete":
        store.remove(event.object);
        this.#version = event.object.metadata?.resourceVersion ?? this.#version;
        return undefined;
      case "bookmark":
        store.progress(event.resourceVersion, this.#options.namespace);
        this.#version = event.resourceVersion;
        return undefined;
      case "unparsable":
        // Its content is lost; only a list has it.
        return { next: "list", reason: "unparsable", backoff: true, error: new Error(event.why) };
      case "error": {
        const error = new Error(event.status.message ?? "watch error");
        if (event.status.code === 410) {
          return { next: "list", reason: "gone", backoff: false };
        }
        if (event.status.code === 429 || (event.status.code ?? 0) >= 500) {
          return { next: "watch", reason: "error", backoff: true, error };
        }
        return { next: "list", reason: "error", backoff: true, error };
      }
    }
  }

  /** The server closed the stream: as it should after the timeout, unless that was suspiciously soon. */
  #ended(received: boolean, started: number): WatchEnd {
    const lasted = this.#clock.monotonic() - started;
    if (lasted >= HEALTHY_MS) {
      this.#backoff.reset();
    }
    return { next: "watch", reason: "closed", backoff: !received && lasted < HEALTHY_MS };
  }

  async #pause(error: unknown, signal: AbortSignal): Promise<void> {
    if (signal.aborted) {
      return;
    }
    const delayMs = this.#backoff.next();
    this.#options.events?.onError?.({ resource: this.resource, error, delayMs });
    await sleep(this.#clock, delayMs, signal);
  }
}

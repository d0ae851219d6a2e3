import { isForbidden } from "../client/errors.ts";
import type { KubernetesObject, Resource } from "../client/types.ts";
import { Reflector, type ReflectorOptions } from "./reflector.ts";
import type { Store } from "./store.ts";

/** Which namespaces are watched, each for itself. */
export interface WatchedNamespaces {
  /** Namespaces, as a reflector of their own keeps them. */
  store: Store;
  includes: (namespace: KubernetesObject) => boolean;
}

/** The names, for `StoreOptions.namespaces`; undefined until the store is filled. */
export function namesOf({ store, includes }: WatchedNamespaces): string[] | undefined {
  return store.hasSynced
    ? store
        .list()
        .filter(includes)
        .map(({ metadata }) => metadata?.name ?? "")
    : undefined;
}

/**
 * Keeps a store equal to what some namespaces have of a resource, with a list and a watch in each of them: for resources
 * that the process may read there alone. A namespace that appears is watched from then on, one that goes is forgotten; one
 * that the process may not read yet is tried again and not waited for.
 */
export class NamespaceReflectors<T extends KubernetesObject = KubernetesObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #namespaces: WatchedNamespaces;
  /** What ends the watch of each namespace. */
  readonly #watches = new Map<string, AbortController>();
  readonly #running = new Set<Promise<void>>();

  constructor(options: Omit<ReflectorOptions<T>, "namespace">, namespaces: WatchedNamespaces) {
    this.#options = options;
    this.#namespaces = namespaces;
  }

  get store(): Store<T> {
    return this.#options.store;
  }

  get resource(): Resource {
    return this.#options.resource;
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { store, includes } = this.#namespaces;
    const stop = store.subscribe(({ type, object }) => {
      const name = object.metadata?.name ?? "";
      if (type !== "delete" && includes(object)) {
        this.#begin(name);
      } else {
        this.#end(name);
      }
    });
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    }
    stop();
    for (const watch of this.#watches.values()) {
      watch.abort();
    }
    await Promise.all(this.#running);
  }

  #begin(namespace: string): void {
    if (this.#watches.has(namespace)) {
      return;
    }
    const { events, store } = this.#options;
    const watch = new AbortController();
    this.#watches.set(namespace, watch);
    const reflector = new Reflector<T>({
      ...this.#options,
      namespace,
      events: {
        ...events,
        onError: (info) => {
          if (isForbidden(info.error) && !watch.signal.aborted) {
            store.skip(namespace);
          }
          events?.onError?.(info);
        },
      },
    });
    const running = reflector.run(watch.signal).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  #end(namespace: string): void {
    this.#watches.get(namespace)?.abort();
    if (this.#watches.delete(namespace)) {
      this.store.forget(namespace);
    }
  }
}

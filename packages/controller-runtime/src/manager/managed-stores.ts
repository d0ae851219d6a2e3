import type { Clock, Logger, Random } from "@slipway/process";
import { NamespaceReflectors, namesOf } from "../cache/namespace-reflectors.ts";
import { Reflector, type ReflectorEvents, type ReflectorOptions } from "../cache/reflector.ts";
import { Store } from "../cache/store.ts";
import type { KubeClient } from "../client/client.ts";
import type { KubeMetrics } from "../client/metrics.ts";
import type { KubernetesObject, Resource } from "../client/types.ts";
import type { StoreRequest } from "./options.ts";
import type { RuntimeMetrics } from "./runtime-metrics.ts";

/** Fills a store, from one watch or several. */
interface StoreKeeper {
  readonly store: { readonly hasSynced: boolean };
  run(signal: AbortSignal): Promise<void>;
}

interface ManagedStoresOptions {
  client: KubeClient;
  clock: Clock;
  random: Random;
  log: Logger;
  metrics: RuntimeMetrics;
  reflectorMetrics: KubeMetrics["reflector"];
}

/** The stores of a manager, each with the reflector that fills it. */
export class ManagedStores {
  readonly #options: ManagedStoresOptions;
  readonly #reflectors: StoreKeeper[] = [];

  constructor(options: ManagedStoresOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#reflectors.length;
  }

  /** Whether every store has received a whole list. */
  get haveSynced(): boolean {
    return this.#reflectors.every((reflector) => reflector.store.hasSynced);
  }

  /** Adds a store; its reflector starts with `run`. */
  add<T extends KubernetesObject>(resource: Resource, request: StoreRequest<T>): Store<T> {
    const { client, clock, random, log, metrics, reflectorMetrics } = this.#options;
    const { indexers, transform, namespaces, ...selection } = request;
    const store = new Store<T>({
      indexers,
      transform,
      namespaces: namespaces && (() => namesOf(namespaces)),
      clock,
      onHandlerError: (error) => {
        metrics.handlerErrors.inc({ resource: resource.plural });
        log.error({ err: error, resource: resource.plural }, "event handler threw");
      },
    });
    const options = {
      ...selection,
      client,
      resource,
      store,
      clock,
      random,
      events: {
        ...reflectorMetrics,
        onError: (info: Parameters<NonNullable<ReflectorEvents["onError"]>>[0]) => {
          reflectorMetrics.onError(info);
          const fields = { err: info.error, resource: resource.plural, delayMs: info.delayMs };
          log.warn(fields, "list or watch failed; trying again");
        },
      },
    } satisfies ReflectorOptions<T>;
    this.#reflectors.push(
      namespaces ? new NamespaceReflectors<T>(options, namespaces) : new Reflector<T>(options),
    );
    return store;
  }

  /** Fills the stores until the signal aborts. */
  run(signal: AbortSignal): Promise<void>[] {
    return this.#reflectors.map((reflector) => reflector.run(signal));
  }
}

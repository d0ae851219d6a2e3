import type { KubernetesObject, ObjectRef } from "../client/types.ts";

/** What happened to one object. A recreated object (new uid) is a `delete` followed by an `add`. */
export type StoreEvent<T> =
  | { type: "add"; key: string; object: T; old?: undefined }
  | { type: "update"; key: string; object: T; old: T }
  /** `object` is the last state known. */
  | { type: "delete"; key: string; object: T; old?: undefined };

/** The reference under which a store event's object is known. */
export function eventRef(event: StoreEvent<KubernetesObject>): ObjectRef {
  return { namespace: event.object.metadata?.namespace, name: event.object.metadata?.name ?? "" };
}

/** Who receives the events of a store. One that throws stops neither the store nor the others. */
export class Subscribers<T> {
  readonly #subscribers = new Set<(event: StoreEvent<T>) => void>();
  readonly #onHandlerError: (error: unknown) => void;

  constructor(onHandlerError: (error: unknown) => void = () => {}) {
    this.#onHandlerError = onHandlerError;
  }

  /** Calls the subscriber with an `add` for each object present, then with every change. Returns the unsubscription. */
  add(subscriber: (event: StoreEvent<T>) => void, present: Iterable<[string, T]>): () => void {
    this.#subscribers.add(subscriber);
    for (const [key, object] of present) {
      this.#deliver(subscriber, { type: "add", key, object });
    }
    return () => this.#subscribers.delete(subscriber);
  }

  emit(event: StoreEvent<T>): void {
    for (const subscriber of this.#subscribers) {
      this.#deliver(subscriber, event);
    }
  }

  #deliver(subscriber: (event: StoreEvent<T>) => void, event: StoreEvent<T>): void {
    try {
      subscriber(event);
    } catch (error) {
      this.#onHandlerError(error);
    }
  }
}

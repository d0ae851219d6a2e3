import { keyOf, type Store } from "@slipway/controller-runtime";
import type { JobRun } from "@slipway/crds";

/** Called for each change of one run; undefined when it is deleted. */
type Listener = (run: JobRun | undefined) => void;

/** Calls that wait for a change of a run: one subscription of the store for all of them. */
export class RunWaiters {
  readonly #store: Store<JobRun>;
  readonly #byKey = new Map<string, Set<Listener>>();
  readonly #end = new AbortController();

  constructor(store: Store<JobRun>) {
    this.#store = store;
    store.subscribe(({ type, key, object }) => {
      for (const listener of this.#byKey.get(key) ?? []) {
        listener(type === "delete" ? undefined : object);
      }
    });
  }

  /** Whether no call waits any more. */
  get ended(): boolean {
    return this.#end.signal.aborted;
  }

  /** Ends every wait with undefined. */
  end(): void {
    this.#end.abort();
  }

  /** The first result of `decide` for the current run or one of its changes; undefined after `timeoutMs`. */
  wait<T>(
    run: JobRun,
    decide: (run: JobRun | undefined) => T | undefined,
    timeoutMs: number,
  ): Promise<T | undefined> {
    const { namespace, name, uid } = run.metadata;
    const now = decide(run);
    if (now !== undefined || this.ended) {
      return Promise.resolve(now);
    }
    return new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        leave();
        this.#end.signal.removeEventListener("abort", onEnd);
      };
      const finish = (decided: T | undefined) => {
        stop();
        resolve(decided);
      };
      const onEnd = () => finish(undefined);
      const listener: Listener = (changed) => {
        try {
          const decided = decide(changed?.metadata.uid === uid ? changed : undefined);
          if (decided !== undefined) {
            finish(decided);
          }
        } catch (error) {
          stop();
          reject(error as Error);
        }
      };
      const leave = this.#join(keyOf(run), listener);
      const timer = setTimeout(() => finish(undefined), timeoutMs);
      this.#end.signal.addEventListener("abort", onEnd, { once: true });
      // It may have changed since it was read; a change that the store does not have yet arrives as an event.
      const known = this.#store.get(namespace, name);
      if (known) {
        listener(known);
      }
    });
  }

  #join(key: string, listener: Listener): () => void {
    const listeners = this.#byKey.get(key) ?? new Set();
    this.#byKey.set(key, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#byKey.get(key) === listeners) {
        this.#byKey.delete(key);
      }
    };
  }
}

/** The connection of a process to the model's apiserver, with its faults: calls are late, fail, and kill the process. */

import type { ObjectRef, Resource } from "@slipway/controller-runtime";
import type { RunCluster } from "../../operator/src/jobs/runs/cluster.ts";
import { type Apiserver, type NewObject, refusal } from "./apiserver.ts";
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

/** The process that calls. */
export interface Caller {
  readonly alive: boolean;
  kill(): void;
  /** Runs code of the process: now, after it was thawed, or never. */
  wake(run: () => void): void;
}

export interface ConnectionOptions {
  timeline: Timeline;
  api: Apiserver;
  chance: Chance;
  faults: CallFaults;
}

export class ModelConnection {
  readonly #options: ConnectionOptions;
  readonly #caller: Caller;

  constructor(options: ConnectionOptions, caller: Caller) {
    this.#options = options;
    this.#caller = caller;
  }

  /** The cluster as the process calls it. */
  cluster(): RunCluster {
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
      if (!this.#caller.alive) {
        return;
      }
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      if (write && chance.happens(faults.killBefore)) {
        this.#caller.kill();
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
        timeline.after(ms, () => this.#caller.wake(signal?.aborted ? () => reject(signal.reason) : respond));
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
          this.#caller.kill();
        }
        const killed = write && chance.happens(faults.killAnswered);
        answer(
          () => {
            respond();
            if (killed) {
              timeline.after(chance.between(0, 5), () => this.#caller.kill());
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
export function selector(text: string | undefined): (object: Stored) => boolean {
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

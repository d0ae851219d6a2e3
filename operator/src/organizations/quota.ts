/** Reads whether a namespace's quota is in effect. */

import { equalQuantities, type KubernetesObject } from "@slipway/controller-runtime";
import type { Clock } from "@slipway/process";

/** The parts of a ResourceQuota that are read here. */
export interface Quota extends KubernetesObject {
  spec?: { hard?: Record<string, string> };
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}

/**
 * Whether everything that a quota is to bound has been counted. Until the quota controller of Kubernetes has taken its limits over, it
 * bounds nothing; until a kind is counted, its creations are refused. Pure.
 * @param hard the desired limits
 */
export function isCounted(hard: Record<string, string>, { status }: Quota): boolean {
  return Object.entries(hard).every(
    ([what, most]) => equalQuantities(status?.hard?.[what], most) && status?.used?.[what] !== undefined,
  );
}

/**
 * How long a quota may stay uncounted before it is created again, in milliseconds. The quota controller searches for new kinds every 30 s, and
 * a quota that it took over just before it knew a kind is counted with its next full synchronization only: five minutes by default.
 */
export const RECOUNT_MS = 35_000;

/** Since when quotas have been seen uncounted, by a clock that nobody sets. */
export class QuotaCounting {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #seen = new Map<string, { uid: string; at: number }>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Milliseconds until the uncounted quota of a namespace is to be created again. */
  leftMs(namespace: string, uid: string): number {
    const now = this.#clock.monotonic();
    const seen = this.#seen.get(namespace);
    if (seen?.uid === uid) {
      return Math.max(0, seen.at + RECOUNT_MS - now);
    }
    this.#seen.set(namespace, { uid, at: now });
    return RECOUNT_MS;
  }

  /** Its quota is counted. */
  forget(namespace: string): void {
    this.#seen.delete(namespace);
  }
}

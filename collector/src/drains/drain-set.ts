import type { SavedPosition } from "@slipway/analytics";
import { type LogDrain, organizationOfNamespace } from "@slipway/crds";
import type { DrainBounds } from "./bounds.ts";
import { Drain } from "./drain.ts";

/** Milliseconds by which a clock that was set back is passed again. */
const REWIND_MS = 5_000;

/** A drain of the cluster that is not known yet. */
export interface AddedDrain {
  uid: string;
  organization: string;
  resource: LogDrain;
}

/** The drains that are delivered, by the uids of their resources. */
export class DrainSet {
  readonly #drains = new Map<string, Drain>();
  readonly #bounds: DrainBounds;

  constructor(bounds: DrainBounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#drains.size;
  }

  get all(): readonly Drain[] {
    return [...this.#drains.values()];
  }

  /** Takes over changes of drains that are known, removes those that are gone, and returns those, and which are new. */
  compare(resources: readonly LogDrain[]): { added: AddedDrain[]; removed: Drain[] } {
    const alive = resources.flatMap((resource) => {
      const organization = organizationOfNamespace(resource.metadata.namespace ?? "");
      const { deletionTimestamp, uid } = resource.metadata;
      return organization === undefined || deletionTimestamp !== undefined || uid === undefined
        ? []
        : [{ resource, organization, uid }];
    });
    const uids = new Set(alive.map(({ uid }) => uid));
    const removed = this.all.filter(({ uid }) => !uids.has(uid));
    for (const { uid } of removed) {
      this.#drains.delete(uid);
    }
    for (const { uid, resource } of alive) {
      this.#drains.get(uid)?.change(resource);
    }
    return { added: alive.filter(({ uid }) => !this.#drains.has(uid)), removed };
  }

  /** Adds drains, each behind its saved position. */
  take(added: readonly AddedDrain[], saved: ReadonlyMap<string, SavedPosition>): void {
    for (const { uid, resource, organization } of added) {
      this.#drains.set(uid, new Drain(resource, organization, saved.get(uid), this.#bounds));
    }
  }

  /**
   * Has lines sent again that the store's clock, which was set back, gave later times than those that come.
   * @param setBackWithin milliseconds within which it was; lines that came since have times of as long before `now`
   */
  rewind(now: number, horizon: number, setBackWithin: number | undefined): void {
    for (const drain of this.#drains.values()) {
      if (drain.isNew) {
        drain.beginBefore(now);
      } else if (setBackWithin !== undefined || drain.storedAt > horizon) {
        drain.rewind(Math.min(now, horizon) - REWIND_MS - (setBackWithin ?? 0));
      }
    }
  }
}

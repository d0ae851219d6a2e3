import { type SavedPosition, type Store, savedPositions, savePositions } from "@slipway/analytics";
import type { Drain } from "./drain.ts";

/** Drains of one query: a statement has no more room. */
const DRAINS_OF_QUERY = 500;

/** Where drains are, as the store has it. Each save has a higher version than all that were read. */
export class Positions {
  readonly #store: Store;
  readonly #wallMs: () => number;
  #version = 0;

  constructor(store: Store, wallMs: () => number) {
    this.#store = store;
    this.#wallMs = wallMs;
  }

  /** Of these drains, by uid. @throws StoreUnavailable */
  async read(uids: readonly string[]): Promise<Map<string, SavedPosition>> {
    const found = new Map<string, SavedPosition>();
    for (let start = 0; start < uids.length; start += DRAINS_OF_QUERY) {
      for (const one of await savedPositions(this.#store, uids.slice(start, start + DRAINS_OF_QUERY))) {
        found.set(one.drain, one);
        // The clock of the process that saved it may have been ahead of this one's.
        this.#version = Math.max(this.#version, one.version);
      }
    }
    return found;
  }

  /** Saves those of drains that have sent something: all in one insert. @throws StoreUnavailable */
  async save(drains: Iterable<Drain>): Promise<void> {
    const dirty = [...drains].filter(({ isDirty }) => isDirty);
    if (dirty.length === 0) {
      return;
    }
    this.#version = Math.max(this.#version + 1, this.#wallMs());
    const saved = dirty.map(({ uid, position, refused, skipped }) => ({
      ...{ drain: uid, version: this.#version },
      ...{ position, refused, skipped },
    }));
    for (const drain of dirty) {
      drain.isDirty = false;
    }
    try {
      await savePositions(this.#store, saved);
    } catch (error) {
      for (const drain of dirty) {
        drain.isDirty = true;
      }
      throw error;
    }
  }
}

/** How many instances the requests of projects need at the least. Pure but for what it remembers. */

/** A project that is scaled by requests. */
export interface Target {
  uid: string;
  /** Of its requests: `<organization>/<project>`. */
  key: string;
  perInstance: number;
  min: number;
  max: number;
  /** The least of its autoscaler as it is. */
  live?: number;
}

/** What was decided last. */
export interface Decision {
  instances: number;
  /** At which it was decided. */
  requestsPerSecond: number;
}

/** Rates as far as they are known. */
export interface Rates {
  of(key: string): number;
  isComplete: boolean;
}

/** For how long the most of what was needed is kept, as Kubernetes' own autoscaler does with what it computes. */
const STABLE_MS = 300_000;
/** A share of an instance more than the target allows starts no other one. */
const TOLERANCE = 0.1;

interface Entry {
  /** What was needed, newest last, each less than the one before it: that one no longer matters once it is old. */
  needed: { at: number; instances: number }[];
  instances: number;
  decision?: Decision;
}

export class LeastInstances {
  readonly #entries = new Map<string, Entry>();

  /** Forgets every project but these. @returns those of which it is another number now */
  update<T extends Target>(targets: readonly T[], rates: Rates, now: number): T[] {
    const there = new Set(targets.map(({ uid }) => uid));
    for (const uid of this.#entries.keys()) {
      if (!there.has(uid)) {
        this.#entries.delete(uid);
      }
    }
    return targets.filter((target) => this.#isChanged(target, rates, now));
  }

  /** Least instances of a project; undefined until it was once decided about. */
  of(uid: string): number | undefined {
    return this.#entries.get(uid)?.instances;
  }

  /** What has changed its number last; undefined while this process has changed nothing. */
  decisionOf(uid: string): Decision | undefined {
    return this.#entries.get(uid)?.decision;
  }

  #isChanged(target: Target, rates: Rates, now: number): boolean {
    const { uid, min, max } = target;
    const within = (instances: number) => Math.min(Math.max(instances, min), max);
    const entry = this.#entries.get(uid) ?? firstEntry(within(target.live ?? min), now);
    this.#entries.set(uid, entry);
    const rate = rates.of(target.key);
    const wanted = within(Math.ceil(rate / target.perInstance - TOLERANCE));
    // Where figures are missing there may be more requests: nothing is taken away.
    const needed = rates.isComplete ? wanted : Math.max(wanted, entry.instances);
    entry.needed = [
      ...entry.needed.filter(({ at, instances }) => now - at <= STABLE_MS && instances > needed),
      { at: now, instances: needed },
    ];
    const instances = within(entry.needed[0]?.instances ?? needed);
    if (instances === entry.instances) {
      return false;
    }
    entry.instances = instances;
    entry.decision = { instances, requestsPerSecond: Math.round(rate) };
    return true;
  }
}

/** An operator that has just started knows nothing of the last minutes: what is there was needed. */
function firstEntry(instances: number, now: number): Entry {
  return { needed: [{ at: now, instances }], instances };
}

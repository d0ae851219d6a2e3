/** How many requests the activator has in hand, shared fairly by organization: those that wait, and apart from them those that are forwarded. */

export interface RequestLimits {
  total: number;
  perOrganization: number;
  perProject: number;
}

/** Of requests that wait. */
export const LIMITS: RequestLimits = { total: 2_000, perOrganization: 400, perProject: 200 };
/** Of requests and connections that are forwarded. */
export const FORWARDED: RequestLimits = { total: 4_000, perOrganization: 1_000, perProject: 500 };

interface Admitted {
  project: string;
  evict: () => void;
}

/** Counts requests from their arrival to the end of their answer. */
export class RequestBounds {
  readonly #limits: RequestLimits;
  /** By organization, in the order of arrival. */
  readonly #admitted = new Map<string, Set<Admitted>>();
  #total = 0;

  constructor(limits: RequestLimits = LIMITS) {
    this.#limits = limits;
  }

  get total(): number {
    return this.#total;
  }

  /**
   * Admits a request. Where all together are as many as may be, the newest of the organization that has most ends, unless this one has as
   * many.
   * @param evict ends the request
   * @returns what is to be called once at its end; undefined when it is refused
   */
  admit(organization: string, project: string, evict: () => void): (() => void) | undefined {
    const own = this.#admitted.get(organization) ?? new Set<Admitted>();
    const { total, perOrganization, perProject } = this.#limits;
    const ofProject = [...own].filter((one) => one.project === project).length;
    if (own.size >= perOrganization || ofProject >= perProject) {
      return undefined;
    }
    if (this.#total >= total && !this.#makeRoom(own.size)) {
      return undefined;
    }
    const admitted = { project, evict };
    this.#admitted.set(organization, own.add(admitted));
    this.#total += 1;
    return () => this.#release(organization, admitted);
  }

  #makeRoom(ownSize: number): boolean {
    let most: [string, Set<Admitted>] | undefined;
    for (const entry of this.#admitted) {
      if (entry[1].size > (most?.[1].size ?? ownSize + 1)) {
        most = entry;
      }
    }
    const newest = most && [...most[1]].at(-1);
    if (most === undefined || newest === undefined) {
      return false;
    }
    this.#release(most[0], newest);
    newest.evict();
    return true;
  }

  #release(organization: string, admitted: Admitted): void {
    const own = this.#admitted.get(organization);
    if (!own?.delete(admitted)) {
      return;
    }
    this.#total -= 1;
    if (own.size === 0) {
      this.#admitted.delete(organization);
    }
  }
}

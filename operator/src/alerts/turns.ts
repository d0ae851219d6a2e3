/** In which order projects are measured, so that each organization gets its turn. */

import type { WatchedProject } from "./rules.ts";

/** Most projects of one query. */
const MOST_PROJECTS = 200;

/**
 * Groups projects for queries: those that have waited longest come first, and of equal ones each organization's first, then each one's second. Those
 * of a query that takes the store too long come after all others from then on, in groups of half as many until they are measured: so whose
 * samples are that many is soon queried alone, after those that were only with it.
 */
export class Turns {
  readonly #most: number;
  #turn = 0;
  /** By uid, in which turn a project was measured last, or tried to be. */
  #turns = new Map<string, number>();
  /** By uid, of how many projects a query with this one may be; of others it is the most. */
  readonly #limits = new Map<string, number>();

  constructor(most = MOST_PROJECTS) {
    this.#most = most;
  }

  /** Begins an evaluation: the projects in their order. What is not among them is forgotten. */
  begin(projects: readonly WatchedProject[]): WatchedProject[] {
    this.#turn += 1;
    this.#turns = new Map(projects.map(({ uid }) => [uid, this.#turns.get(uid) ?? 0]));
    for (const uid of this.#limits.keys()) {
      if (!this.#turns.has(uid)) {
        this.#limits.delete(uid);
      }
    }
    const ofOrganization = new Map<string, number>();
    const longestFirst = projects.toSorted((a, b) => this.#turnOf(a) - this.#turnOf(b));
    const ranked = longestFirst.map((project) => {
      const rank = ofOrganization.get(project.organization) ?? 0;
      ofOrganization.set(project.organization, rank + 1);
      const limit = this.#limitOf(project);
      return { project, rank, limit, turn: this.#turnOf(project), suspicion: limit < this.#most ? 1 : 0 };
    });
    return ranked
      .toSorted(
        (a, b) => a.suspicion - b.suspicion || a.turn - b.turn || b.limit - a.limit || a.rank - b.rank,
      )
      .map(({ project }) => project);
  }

  /** The first of what is left to be measured, as many as one query may be of. */
  next(waiting: readonly WatchedProject[]): WatchedProject[] {
    const group: WatchedProject[] = [];
    let limit = this.#most;
    for (const project of waiting) {
      limit = Math.min(limit, this.#limitOf(project));
      if (group.length >= limit) {
        break;
      }
      group.push(project);
    }
    return group;
  }

  /** A group was measured. */
  measured(group: readonly WatchedProject[]): void {
    for (const project of group) {
      this.#turns.set(project.uid, this.#turn);
      const limit = this.#limitOf(project) * 2;
      if (limit < this.#most) {
        this.#limits.set(project.uid, limit);
      } else {
        this.#limits.delete(project.uid);
      }
    }
  }

  /** A group took the store too long: each of them may be the cause. */
  wasTooMuch(group: readonly WatchedProject[]): void {
    for (const { uid } of group) {
      this.#turns.set(uid, this.#turn);
      this.#limits.set(uid, Math.max(1, Math.floor(group.length / 2)));
    }
  }

  #turnOf({ uid }: WatchedProject): number {
    return this.#turns.get(uid) ?? 0;
  }

  #limitOf({ uid }: WatchedProject): number {
    return this.#limits.get(uid) ?? this.#most;
  }
}

/** In which order projects are measured, so that each organization gets its turn. */

import type { WatchedProject } from "./rules.ts";

/** Most projects of one query. */
const MOST_PROJECTS = 200;

/**
 * Groups projects for queries: those that have waited longest come first, and of equal ones each organization's first, then each one's second. A
 * query that takes the store too long halves the next ones, so that whose samples are that many delays others once.
 */
export class Turns {
  readonly #most: number;
  #size: number;
  #turn = 0;
  /** By uid, in which turn a project was measured last, or tried to be. */
  #turns = new Map<string, number>();

  constructor(most = MOST_PROJECTS) {
    this.#most = most;
    this.#size = most;
  }

  /** Begins an evaluation: the projects in their order. What is not among them is forgotten. */
  begin(projects: readonly WatchedProject[]): WatchedProject[] {
    this.#turn += 1;
    this.#turns = new Map(projects.map(({ uid }) => [uid, this.#turns.get(uid) ?? 0]));
    const ofOrganization = new Map<string, number>();
    const longestFirst = projects.toSorted((a, b) => this.#turnOf(a) - this.#turnOf(b));
    const ranked = longestFirst.map((project) => {
      const rank = ofOrganization.get(project.organization) ?? 0;
      ofOrganization.set(project.organization, rank + 1);
      return { project, rank, turn: this.#turnOf(project) };
    });
    return ranked.toSorted((a, b) => a.turn - b.turn || a.rank - b.rank).map(({ project }) => project);
  }

  /** The next of what is left to be measured; they count as tried. */
  next(waiting: readonly WatchedProject[]): WatchedProject[] {
    const group = waiting.slice(0, this.#size);
    for (const { uid } of group) {
      this.#turns.set(uid, this.#turn);
    }
    return group;
  }

  /** The last group was measured, or took the store too long. */
  ended({ isTooMuch }: { isTooMuch: boolean }): void {
    this.#size = isTooMuch ? Math.max(1, Math.floor(this.#size / 2)) : Math.min(this.#most, this.#size * 2);
  }

  #turnOf({ uid }: WatchedProject): number {
    return this.#turns.get(uid) ?? 0;
  }
}

/** In which order projects are measured, so that each organization gets its turn. */

import type { WatchedProject } from "./rules.ts";

/** Most projects of one query. */
const MOST_PROJECTS = 200;
/** How often projects of a smaller group have to be measured before twice as many are tried. */
const MEASURED_BEFORE_MORE = 10;
/** A suspect that was not tried for so many evaluations has its turn as others have, */
const LONGEST_WAIT = 10;
/** but in one of so many: however many suspects fail, others are measured in the rest. */
const EVERY = 4;

/** What is known of a project of a group that failed. */
interface Limit {
  /** Of how many projects a query with this one may be. */
  most: number;
  /** Since the last query with it failed. */
  isSuspect: boolean;
  /** How often it was measured with this limit. */
  measured: number;
}

/**
 * Groups projects for queries: those that have waited longest come first, and of equal ones each organization's first, then each one's second. Those
 * of a query that failed come after all others, and with none of them, in groups of half as many until they are measured: so whose samples are too
 * many is soon queried alone, after those that were only with it. Where the others need all of the time, suspects get a turn at their front now and then.
 */
export class Turns {
  readonly #most: number;
  #turn = 0;
  /** By uid, in which turn a project was measured last, or tried to be. */
  #turns = new Map<string, number>();
  /** By uid; a query with another project may be of the most. */
  readonly #limits = new Map<string, Limit>();

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
      return {
        project,
        rank,
        limit,
        turn: this.#turnOf(project),
        suspicion: this.#hasToWait(project) ? 1 : 0,
      };
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
    const isSuspect = waiting[0] !== undefined && this.#isSuspect(waiting[0]);
    for (const project of waiting) {
      limit = Math.min(limit, this.#limitOf(project));
      if (group.length >= limit || this.#isSuspect(project) !== isSuspect) {
        break;
      }
      group.push(project);
    }
    return group;
  }

  /** A group was measured. */
  measured(group: readonly WatchedProject[]): void {
    this.tried(group);
    for (const { uid } of group) {
      const limit = this.#limits.get(uid);
      if (limit === undefined) {
        continue;
      }
      const measured = limit.measured + 1;
      const isEnough = measured >= MEASURED_BEFORE_MORE;
      const most = isEnough ? limit.most * 2 : limit.most;
      if (most < this.#most) {
        this.#limits.set(uid, { most, isSuspect: false, measured: isEnough ? 0 : measured });
      } else {
        this.#limits.delete(uid);
      }
    }
  }

  /** A query of a group failed, maybe by one of its projects: each of them may be the cause. */
  failed(group: readonly WatchedProject[]): void {
    this.tried(group);
    const most = Math.max(1, Math.floor(group.length / 2));
    for (const { uid } of group) {
      this.#limits.set(uid, { most, isSuspect: true, measured: 0 });
    }
  }

  /** A group had its turn, which says nothing about it. */
  tried(group: readonly WatchedProject[]): void {
    for (const { uid } of group) {
      this.#turns.set(uid, this.#turn);
    }
  }

  #hasToWait(project: WatchedProject): boolean {
    const isLong = this.#turn - this.#turnOf(project) >= LONGEST_WAIT;
    return this.#isSuspect(project) && !(isLong && this.#turn % EVERY === 0);
  }

  #isSuspect({ uid }: WatchedProject): boolean {
    return this.#limits.get(uid)?.isSuspect ?? false;
  }

  #turnOf({ uid }: WatchedProject): number {
    return this.#turns.get(uid) ?? 0;
  }

  #limitOf({ uid }: WatchedProject): number {
    return this.#limits.get(uid)?.most ?? this.#most;
  }
}

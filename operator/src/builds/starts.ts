/** What no status reports yet: which builds were given a place, and which could not be started with theirs. */

import type { Build } from "@slipway/crds";
import { isBuilding, isEnded } from "./queue.ts";

const uidOf = ({ metadata }: Build): string => metadata.uid ?? "";

export class Starts {
  readonly #starting = new Set<string>();
  /** They try again, each by itself; meanwhile they keep no place, and nobody waits for them. */
  readonly #failed = new Set<string>();

  /** Gives a build its place, before anything is waited for: no other worker may take the same one. */
  begin(build: Build): void {
    this.#starting.add(uidOf(build));
    this.#failed.delete(uidOf(build));
  }

  /** Takes the place of a build back that could not be started: its Git server does not answer, or a quota is full. */
  fail(build: Build): void {
    this.#starting.delete(uidOf(build));
    this.#failed.add(uidOf(build));
  }

  /**
   * What a build's turn depends on.
   * @param builds all that there are
   */
  beside(build: Build, builds: readonly Build[]): { builds: Build[]; starting: ReadonlySet<string> } {
    const known = new Map(builds.map((one) => [uidOf(one), one]));
    for (const uids of [this.#starting, this.#failed]) {
      for (const uid of uids) {
        const one = known.get(uid);
        if (!one || isEnded(one) || isBuilding(one)) {
          uids.delete(uid);
        }
      }
    }
    const counted = builds.filter((one) => uidOf(one) === uidOf(build) || !this.#failed.has(uidOf(one)));
    return { builds: counted, starting: this.#starting };
  }
}

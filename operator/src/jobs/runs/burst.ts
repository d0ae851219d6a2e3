/**
 * Detects that many occurrences are due at one moment, so that writes which are not urgent are deferred: on a busy control plane
 * every write after the end of one run delays the start of another.
 */

import type { Store } from "@slipway/controller-runtime";
import type { JobRun, Project } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { isAccepted, isScheduled, jobStateOf } from "./job-state.ts";
import { dateOf } from "./run.ts";

/** Undecided occurrences from which on it is a burst. */
export const BURST_SIZE = 25;
/** How long a count is used, in milliseconds. */
const COUNT_TTL_MS = 250;
/** How long after a run's end its writes are deferred at most, in milliseconds. */
export const MAX_DEFER_MS = 60_000;

export class OccurrenceBurst {
  readonly #projects: Store<Project>;
  readonly #clock: Clock;
  #counted: { at: number; on: boolean } | undefined;

  constructor(projects: Store<Project>, clock: Clock) {
    this.#projects = projects;
    this.#clock = clock;
  }

  /** Whether the writes that follow an ended run's charge are deferred now: no client waits for them. */
  defersWrites(run: JobRun, project: Project | undefined): boolean {
    if (!project || !isScheduled(project) || run.metadata.deletionTimestamp) {
      return false;
    }
    const ended = dateOf(run.status?.finishedAt);
    const age = ended ? this.#clock.now().getTime() - ended.getTime() : MAX_DEFER_MS;
    return age < MAX_DEFER_MS && this.#isOn();
  }

  #isOn(): boolean {
    const at = this.#clock.monotonic();
    if (!this.#counted || at - this.#counted.at >= COUNT_TTL_MS) {
      this.#counted = { at, on: this.#count() };
    }
    return this.#counted.on;
  }

  #count(): boolean {
    const now = this.#clock.now();
    let due = 0;
    for (const project of this.#projects.list()) {
      if (isOccurrenceDue(project, now)) {
        due += 1;
      }
      if (due >= BURST_SIZE) {
        return true;
      }
    }
    return false;
  }
}

/** Whether an occurrence is due that could be admitted as soon as its Job exists. */
function isOccurrenceDue(project: Project, now: Date): boolean {
  const { activeRun, nextScheduledAt } = jobStateOf(project);
  if (activeRun !== undefined || nextScheduledAt === undefined) {
    return false;
  }
  return new Date(nextScheduledAt) <= now && isScheduled(project) && isAccepted(project);
}

/** Violations, each with the latest events of its project. */

import { EventHistory } from "./event-history.ts";
import type { Timeline } from "./timeline.ts";

export interface Violation {
  at: number;
  project: string;
  text: string;
  history: string[];
}

export class ViolationLog {
  readonly violations: Violation[] = [];
  readonly #timeline: Timeline;
  readonly #history: EventHistory;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
    this.#history = new EventHistory(() => timeline.now);
  }

  /** Reports a violation. */
  violate(project: string, text: string): void {
    this.violations.push({ at: this.#timeline.now, project, text, history: this.#history.of(project) });
  }

  /** Records an event of a project. */
  record(project: string, text: () => string): void {
    this.#history.record(project, text);
  }
}

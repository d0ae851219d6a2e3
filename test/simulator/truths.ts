/** What is true of all projects and runs of the model, by name and by pod. */

import type { ContainerRecord } from "./container.ts";
import type { SpecChange } from "./decision-rules.ts";
import { newRunTruth, type RunTruth } from "./run-truth.ts";

/** Runs of a project that are compared with one that is admitted. */
const MAX_KEPT = 8;

export interface ProjectTruth {
  readonly id: string;
  readonly changes: SpecChange[];
  readonly active: Set<ContainerRecord>;
}

export class Truths {
  readonly runs = new Map<string, RunTruth>();
  readonly projects = new Map<string, ProjectTruth>();
  /** Runs by the uid of their pods. */
  readonly byPod = new Map<string, RunTruth>();
  /** The newest runs of each project. */
  readonly #byProject = new Map<string, RunTruth[]>();

  /** A project, which is added when it is new. */
  project(id: string): ProjectTruth {
    const truth = this.projects.get(id) ?? { id, changes: [], active: new Set() };
    this.projects.set(id, truth);
    return truth;
  }

  /** A run, which is added when it is new. */
  run(name: string, project: string): RunTruth {
    const known = this.runs.get(name);
    if (known) {
      return known;
    }
    const minute = Number(name.slice(project.length + 1).split("-")[0]);
    const truth = newRunTruth(name, project, minute * 60_000);
    this.runs.set(name, truth);
    const newest = this.#byProject.get(project) ?? [];
    newest.push(truth);
    if (newest.length > MAX_KEPT) {
      newest.shift();
    }
    this.#byProject.set(project, newest);
    return truth;
  }

  newestOf(project: string): readonly RunTruth[] {
    return this.#byProject.get(project) ?? [];
  }
}

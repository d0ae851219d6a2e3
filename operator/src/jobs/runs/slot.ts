/** Writes to `status.job` of a project, each conditional on the version that it was decided from. */

import { isConflict, isNotFound, mergePatch, refOf, type Store } from "@slipway/controller-runtime";
import { fieldManagers, type Project } from "@slipway/crds";
import { projectResource } from "../../resources.ts";
import type { RunCluster } from "./cluster.ts";
import { type JobState, jobStateOf } from "./job-state.ts";

/** How often a decision is repeated because the project changed meanwhile. */
const MAX_TRIES = 5;

/** Result of `change`. */
export interface Changed<D> {
  /** The project as it is then; undefined when it was deleted. */
  project: Project | undefined;
  /** The decision that was written. */
  decision?: D;
}

/**
 * Compares and swaps: decides from the project, writes only if it is unchanged, and decides again otherwise. Two leaders
 * cannot both acquire a slot, nor can one write by what it read before it was stopped.
 */
export class SlotWriter {
  readonly #cluster: RunCluster;
  readonly #projects: Store<Project>;

  constructor(cluster: RunCluster, projects: Store<Project>) {
    this.#cluster = cluster;
    this.#projects = projects;
  }

  /**
   * Writes the `status.job` that `decide` returns, nothing for undefined. A project of another uid counts as deleted.
   * @throws KubeError 409 when the project keeps changing
   */
  async change<D extends { state: JobState }>(
    project: Project,
    decide: (project: Project) => D | undefined,
    signal: AbortSignal,
  ): Promise<Changed<D>> {
    let current = project;
    for (let left = MAX_TRIES; ; left -= 1) {
      const decision = decide(current);
      if (!decision) {
        return { project: current };
      }
      const patch = mergePatch(jobStateOf(current), decision.state);
      if (!patch) {
        return { project: current, decision };
      }
      try {
        const written = await this.#write(current, patch, signal);
        return { project: written, decision };
      } catch (error) {
        if (isNotFound(error)) {
          return { project: undefined };
        }
        if (!isConflict(error) || left === 0) {
          throw error;
        }
      }
      const live = await this.live(project, signal);
      if (!live) {
        return { project: undefined };
      }
      current = live;
    }
  }

  /** The project as it is now; undefined when it was deleted. */
  async live(project: Project, signal: AbortSignal): Promise<Project | undefined> {
    const live = await this.#cluster.getOrUndefined<Project>(projectResource, refOf(project), { signal });
    if (!live || live.metadata.uid !== project.metadata.uid) {
      return undefined;
    }
    this.#projects.observe(live);
    return live;
  }

  async #write(project: Project, job: object, signal: AbortSignal): Promise<Project> {
    const { resourceVersion, uid } = project.metadata;
    const written = await this.#cluster.patch<Project>(
      projectResource,
      refOf(project),
      { metadata: { resourceVersion, uid }, status: { job } },
      { subresource: "status", fieldManager: fieldManagers.jobRun, signal },
    );
    this.#projects.observe(written);
    return written;
  }
}

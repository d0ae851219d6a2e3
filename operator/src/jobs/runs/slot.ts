/** Writes to `status.job` of a project: each one holds only for the project that it was decided from. */

import { isConflict, isNotFound, mergePatch, refOf, type Store } from "@slipway/controller-runtime";
import { fieldManagers, type Project } from "@slipway/crds";
import { projectResource } from "../../resources.ts";
import type { RunCluster } from "./cluster.ts";
import { type JobState, jobStateOf } from "./job-state.ts";

/** How often a decision is made anew because the project changed meanwhile. */
const MAX_TRIES = 5;

/** What `change` came to. */
export interface Changed<D> {
  /** The project as it is then; undefined when it is gone. */
  project: Project | undefined;
  /** The decision that was carried out. */
  decision?: D;
}

/**
 * Compares and swaps: decides from the project, writes only if it is still the same, and decides anew otherwise. Two
 * leaders cannot both take a slot, nor one act on what it read before it was stopped.
 */
export class SlotWriter {
  readonly #cluster: RunCluster;
  readonly #projects: Store<Project>;

  constructor(cluster: RunCluster, projects: Store<Project>) {
    this.#cluster = cluster;
    this.#projects = projects;
  }

  /**
   * Brings `status.job` to what `decide` says, undefined for "as it is". A project of another uid counts as gone.
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

  /** The project as it is now; undefined when it is gone. */
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

/**
 * Pods that run, or may start, although their run is over. A Job creates another pod when its pod is deleted by force,
 * finalizers included, before the Job controller has counted it as ended.
 */

import { refOf } from "@slipway/controller-runtime";
import type { JobRun } from "@slipway/crds";
import { type Job, type RunPod, readContainer } from "./cluster.ts";
import type { RunContext } from "./context.ts";
import type { RunObjects } from "./objects.ts";
import { isOver } from "./run.ts";
import { POLL_INTERVAL_MS } from "./settings.ts";

/** Objects of one run that have to be stopped. */
export interface Leftover {
  /** Its Job, while that may create another pod. */
  job: Job | undefined;
  /** Pods whose container runs, or may start. */
  pods: RunPod[];
}

/** Finds the leftover objects of a run. Pure. */
export function leftoverOf(run: JobRun, job: Job | undefined, pods: readonly RunPod[]): Leftover {
  if (!isOver(run)) {
    return { job: undefined, pods: [] };
  }
  const running = pods.filter((pod) => readContainer(pod).state !== "ended");
  const podUid = run.status?.podUid;
  const removed = podUid !== undefined && !pods.some(({ metadata }) => metadata.uid === podUid);
  const again = job !== undefined && (removed || running.length > 0) && mayMakePods(job);
  return { job: again ? job : undefined, pods: running };
}

export class Leftovers {
  readonly #objects: RunObjects;

  constructor(objects: RunObjects) {
    this.#objects = objects;
  }

  /** Deletes the leftovers of runs. Returns whether there are any: until they have ended, nothing else may start. */
  async stop(runs: readonly JobRun[], { signal, requeue }: RunContext): Promise<boolean> {
    let any = false;
    for (const run of runs) {
      const ref = refOf(run);
      const created = this.#objects.jobs.store.get(ref.namespace, ref.name);
      const { job, pods } = leftoverOf(run, created, this.#objects.podsOf(ref));
      if (job) {
        await this.#objects.remove(this.#objects.jobs, job, signal);
      }
      for (const pod of pods) {
        await this.#objects.remove(this.#objects.pods, pod, signal);
      }
      any ||= job !== undefined || pods.length > 0;
    }
    if (any) {
      requeue.after(POLL_INTERVAL_MS);
    }
    return any;
  }
}

/** Whether the Job controller may create a pod: the Job is neither finished nor being deleted. */
function mayMakePods({ metadata, status }: Job): boolean {
  if (metadata.deletionTimestamp !== undefined) {
    return false;
  }
  return !status?.conditions?.some(
    ({ type, status: value }) => (type === "Failed" || type === "Complete") && value === "True",
  );
}

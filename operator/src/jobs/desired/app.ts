/** The input of a scheduled job's children: its spec, resolved against the plan catalog and the platform. Pure. */

import type { Catalog, JobPlan, Project } from "@slipway/crds";
import type { Accepted } from "../../projects/accept.ts";
import type { Placement, Workload } from "../../workload/app.ts";
import { toWorkload } from "../../workload/view.ts";

/** Settings of the platform that jobs depend on. */
export interface JobPlatform {
  /** Longest time of a run from its container's start, in seconds. */
  runLimitSeconds: number;
  /** Seconds in which its container must have started. */
  startDeadlineSeconds: number;
  /** Version of what the pods' templates of new deployments are made from; the first by default. */
  templateVersion?: number;
  /** Where runs run. */
  pods?: Placement;
}

/** One scheduled job, ready to be turned into objects. Every field is already validated. */
export interface JobApp extends Workload {
  type: "job";
  /** Id of the plan that its runs are sized for and billed on. */
  plan: string;
  /** Five fields, in UTC. */
  cron: string;
  /** In place of the image's entrypoint, word by word. */
  command: readonly string[];
  args: readonly string[];
  /** No new Job is created for an occurrence. */
  suspended: boolean;
  runLimitSeconds: number;
  startDeadlineSeconds: number;
}

/** Whether a job's schedule is suspended: no new run begins. */
export function isResting({ metadata, spec }: Project): boolean {
  return spec.paused === true || spec.job?.closedAt !== undefined || metadata.deletionTimestamp !== undefined;
}

export function toJobApp(
  project: Project,
  accepted: Accepted<JobPlan>,
  { catalog, platform }: { catalog: Catalog; platform: JobPlatform },
): JobApp {
  const { job } = project.spec;
  return {
    ...toWorkload(project, accepted, catalog),
    type: "job",
    placement: platform.pods,
    plan: accepted.plan.plan,
    cron: job?.cron ?? "",
    command: job?.command ?? [],
    args: job?.args ?? [],
    suspended: isResting(project),
    runLimitSeconds: platform.runLimitSeconds,
    startDeadlineSeconds: platform.startDeadlineSeconds,
  };
}

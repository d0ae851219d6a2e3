/**
 * Jobs: projects that run a container on a schedule. This file is the project kind: it applies the CronJob and the volume
 * (`desired/`), reports them (`status.ts`) and deletes them (`deletion.ts`). `runs/` is the controller of
 * JobRuns: it admits the occurrences of a schedule, or counts them as missed, follows runs, and charges for them.
 */

import { controllerOf, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { annotations, type Catalog, fieldManagers, type JobPlan, type Project } from "@slipway/crds";
import type { DesiredObject } from "../desired.ts";
import { type Accepted, planOfImage, refuse } from "../projects/accept.ts";
import {
  type KindDependencies,
  type Observation,
  ownerOf,
  type ProjectContext,
  type ProjectKind,
  type Remaining,
} from "../projects/kind.ts";
import { childOf } from "../projects/stores.ts";
import { claimOf, growVolume, isVolumeBound } from "../projects/volume.ts";
import { type GrowthObstacle, persistentVolumeClaim, withLiveClaim } from "../workload/pvc.ts";
import { withTemplateVersion } from "../workload/template-version.ts";
import { type CloseMetering, removeJob } from "./deletion.ts";
import { isResting, type JobApp, type JobPlatform, toJobApp } from "./desired/app.ts";
import { cronJob, settingsHash } from "./desired/cron-job.ts";
import { summarizeJob, summarizeRest } from "./status.ts";

export interface JobDependencies extends KindDependencies {
  platform: JobPlatform;
  closeMetering: CloseMetering;
}

/** The parts of a CronJob that are read here. */
interface LiveCronJob extends KubernetesObject {
  spec?: {
    suspend?: boolean;
    jobTemplate?: { spec?: { template?: { metadata?: { annotations?: Record<string, string> } } } };
  };
}

/** What one reconcile has applied. */
interface Applied {
  app: JobApp;
  /** Hash of the template of the next run. */
  hash: string;
  limits: JobPlan["resources"]["limits"];
  obstacle?: GrowthObstacle;
}

export class JobKind implements ProjectKind<JobPlan, Applied> {
  readonly #deps: JobDependencies;

  constructor(deps: JobDependencies) {
    this.#deps = deps;
  }

  async observeRollout(project: Project, { status, signal }: ProjectContext): Promise<void> {
    this.#follow(project, status);
    if (isResting(project)) {
      await this.#suspend(project, signal);
    }
  }

  validate(project: Project): JobPlan {
    return validateJob(project, this.#deps.catalog());
  }

  async apply(project: Project, accepted: Accepted<JobPlan>, context: ProjectContext): Promise<Applied> {
    const { log, signal, status } = context;
    const { applier, catalog, deployments, platform } = this.#deps;
    const wanted = toJobApp(project, accepted, { catalog: catalog(), platform });
    const app = withTemplateVersion(wanted, status, settingsHash, platform.templateVersion);
    const hash = settingsHash(app);
    deployments.begin(project, hash, status, accepted.valuesOnly);
    status.templateVersion = app.templateVersion;
    const objects = withLiveClaim(desired(app), claimOf(this.#deps.stores, project));
    await applier.applyAndPrune(ownerOf(project), objects, { log, signal });
    const { obstacle } = await growVolume(project, this.#deps, context);
    return { app, hash, limits: accepted.plan.resources.limits, obstacle };
  }

  async observe(
    project: Project,
    { app, hash, limits, obstacle }: Applied,
    { conditions, status }: ProjectContext,
  ): Promise<Observation> {
    // No event follows for a CronJob that was up to date.
    this.#follow(project, status);
    const volume = app.volume && { bound: isVolumeBound(this.#deps.stores, project), obstacle };
    summarizeJob(project, { inPlace: this.#runs(project) === hash, volume, limits }, conditions, status);
    return {};
  }

  async holdRejectedSpec(project: Project, { conditions }: ProjectContext): Promise<undefined> {
    summarizeRest(project, conditions);
  }

  async finalize(project: Project, { conditions, signal }: ProjectContext): Promise<Remaining | undefined> {
    await this.#suspend(project, signal);
    summarizeRest(project, conditions);
    return removeJob(project, this.#deps, signal);
  }

  /** A deployment has succeeded once the next run uses it. */
  #follow(project: Project, status: ProjectContext["status"]): void {
    this.#deps.deployments.follow(project, status, (newest) => ({
      complete: this.#runs(project) === newest.settingsHash,
    }));
  }

  /** Hash of the template of the next run. */
  #runs(project: Project): string | undefined {
    const template = this.#cronJob(project)?.spec?.jobTemplate?.spec?.template;
    return template?.metadata?.annotations?.[annotations.settingsHash];
  }

  /** Suspends the schedule even when the spec is rejected. An apply of the CronJob sets the same field as the same manager. */
  async #suspend(project: Project, signal: AbortSignal): Promise<void> {
    const { client, stores } = this.#deps;
    const live = this.#cronJob(project);
    if (live === undefined || live.spec?.suspend === true || live.metadata?.deletionTimestamp) {
      return;
    }
    const { name = "", namespace, uid } = live.metadata ?? {};
    const patch = { metadata: { uid }, spec: { suspend: true } };
    const options = { fieldManager: fieldManagers.project, signal };
    const written = await client.patch(resources.cronJobs, { name, namespace }, patch, options);
    stores.children.find(({ resource }) => resource === resources.cronJobs)?.store.observe(written);
  }

  /** The CronJob that the project owns. */
  #cronJob(project: Project): LiveCronJob | undefined {
    const live = childOf<LiveCronJob>(this.#deps.stores, resources.cronJobs, project);
    return live && controllerOf(live)?.uid === project.metadata.uid ? live : undefined;
  }
}

/** The plan of a scheduled job that is supported here. @throws TerminalError about the condition `Accepted` */
export function validateJob(project: Project, catalog: Catalog): JobPlan {
  if (!catalog.jobsEnabled) {
    throw refuse("FeatureNotSupported", "Scheduled jobs are disabled on this platform.");
  }
  if (!project.spec.job) {
    throw refuse("FeatureNotSupported", "A job needs a schedule.");
  }
  return planOfImage(project, catalog, { plans: catalog.jobPlans, type: "jobs" });
}

/** The children in the order in which they are applied: dependencies first. */
export function desired(app: JobApp): DesiredObject[] {
  return [persistentVolumeClaim(app), cronJob(app)].filter((object) => object !== undefined);
}

/**
 * One-off runs: a command in the image of an application that serves, apart from its instances. Such a run has no slot, for it may run beside
 * others. Its Job is created suspended, its uid is recorded in the run's status together with the admission, and only the Job of that uid
 * is unsuspended, for the version that was read: so nothing starts twice, by whichever process and however late.
 */

import { controllerOf, isInvalid, isQuotaExceeded, refKey, refOf } from "@slipway/controller-runtime";
import {
  annotations,
  isOneOff,
  type JobRun,
  minutePrice,
  ONE_OFF_ACTIVE_MAX,
  oneOffLimit,
  type Project,
} from "@slipway/crds";
import { ConcurrencyLimiter } from "@slipway/process";
import { oneOffJob } from "../../applications/desired/one-off-job.ts";
import { type Serving, servingVersion } from "../../applications/serving.ts";
import type { Job } from "./cluster.ts";
import type { JobRunDependencies, RunContext } from "./context.ts";
import { admissionPatch } from "./manifests.ts";
import type { RunObjects } from "./objects.ts";
import { type Refusal, type RequestView, refusalOfRequest } from "./request.ts";
import { admissionTime, hasOneOffRuns, isOver, limitMsOf } from "./run.ts";
import { oneOffAdmitted, refused } from "./status.ts";
import { BY_PROJECT, projectOfRun } from "./stores.ts";

/** What a one-off run is decided from. */
export interface OneOffView extends RequestView {
  serving: Serving | "none" | "incomplete";
  /** Other one-off runs that are admitted and not over. */
  active: { project: number; organization: number };
}

/** Why a one-off run is refused; undefined when it is admitted. Pure. */
export function oneOffRefusal(view: OneOffView): Refusal | undefined {
  const { serving, active } = view;
  return refusalOfRequest(view, {
    type: (project) =>
      hasOneOffRuns(project) ? undefined : "A command of its own is for applications alone.",
    closed: ({ metadata }) =>
      metadata.deletionTimestamp === undefined
        ? undefined
        : { reason: "ProjectGone", message: "The project is being deleted." },
    isComplete: serving !== "incomplete",
    blocked: () => {
      if (serving === "none") {
        return { reason: "NotDeployed", message: "No deployment of the project has ever succeeded." };
      }
      const ofProject = oneOffLimit(typeof serving === "string" ? undefined : serving.plan);
      const isFull = active.project >= ofProject || active.organization >= ONE_OFF_ACTIVE_MAX.organization;
      return isFull ? { reason: "TooManyRuns", message: "As many as may be are active already." } : undefined;
    },
  });
}

/** A plan that costs nothing may have other prices in a catalog. */
const priceOfMinute = ({ free, prices }: Serving["plan"]): string =>
  free ? "0" : minutePrice(prices.hourly);

/** Whether a Job was created for this very run, and stays. */
const isJobOf = ({ metadata: { uid } }: JobRun, { metadata }: Job): boolean =>
  metadata.deletionTimestamp === undefined && controllerOf({ metadata })?.uid === uid;

/** Why the cluster has no such Job, for good: neither a right that is missing nor a failure on the way. */
function refusedJob(error: unknown): string {
  if (isQuotaExceeded(error)) {
    return "The quota of the organization's namespace has no place for its Job.";
  }
  if (isInvalid(error)) {
    return "The cluster refuses its Job as invalid.";
  }
  throw error;
}

export class OneOffRuns {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;
  /** By organization: projects are reconciled concurrently, and no run may be admitted between the count of the active ones and its record. */
  readonly #admissions = new ConcurrencyLimiter({ perKey: 1 });

  constructor(deps: JobRunDependencies, objects: RunObjects) {
    this.#deps = deps;
    this.#objects = objects;
  }

  /**
   * Decides a run that has not been decided: admits it, or refuses it for good.
   * @param run with our labels, finalizer and owner
   * @param project as it is now
   */
  async decide(run: JobRun, project: Project | undefined, context: RunContext): Promise<void> {
    const admitted = await this.#admissions.run(run.metadata.namespace ?? "", () =>
      this.#decide(run, project, context),
    );
    if (admitted) {
      await this.start(admitted, context);
    }
  }

  async #decide(run: JobRun, project: Project | undefined, context: RunContext): Promise<JobRun | undefined> {
    const { clock, settings, catalog, stores, placement } = this.#deps;
    const serving = project ? servingVersion(project, { catalog: catalog(), placement }) : "none";
    const refusal = oneOffRefusal({
      run,
      project,
      serving,
      active: this.#active(run),
      now: clock.now(),
      windowMs: settings.windowMs,
      isProject: (id) => stores.projects.get(run.metadata.namespace, id) !== undefined,
    });
    if (refusal) {
      const status = refused(run, refusal.reason, refusal.message, clock.now());
      await this.#objects.writeStatus(run, status, context.signal);
      context.requeue.after(1);
      return undefined;
    }
    return typeof serving === "string" ? undefined : this.#admit(run, serving, context);
  }

  /** Completes an admission: unsuspends the Job that is recorded, unless the run is cancelled or its time to start is over. */
  async start(run: JobRun, { signal }: RunContext): Promise<void> {
    const { status } = run;
    const { plan, pricePerMinute } = status ?? {};
    const admittedAt = admissionTime(run, undefined);
    if (status?.podUid !== undefined || run.spec.cancelRequestedAt !== undefined || !admittedAt) {
      return;
    }
    const ref = refOf(run);
    const { jobs } = this.#objects;
    const job = jobs.store.get(ref.namespace, ref.name) ?? (await this.#objects.live(jobs, ref, signal));
    const mayStart = job?.metadata.uid === status?.jobUid && job?.metadata.deletionTimestamp === undefined;
    const isLate =
      this.#deps.clock.now().getTime() >= admittedAt.getTime() + this.#deps.settings.startDeadlineMs;
    if (!job?.spec?.suspend || !mayStart || isLate || plan === undefined || pricePerMinute === undefined) {
      return;
    }
    await this.#objects.patch(jobs, job, admissionPatch(job, { plan, pricePerMinute }, admittedAt), {
      signal,
    });
  }

  /** @returns the run with its admission; undefined when that has to wait, or is refused */
  async #admit(run: JobRun, serving: Serving, context: RunContext): Promise<JobRun | undefined> {
    const { clock } = this.#deps;
    const { deployment, plan } = serving;
    const job = await this.#job(run, serving, context.signal).catch(refusedJob);
    if (typeof job === "string") {
      await this.#objects.writeStatus(run, refused(run, "NotAccepted", job, clock.now()), context.signal);
      context.requeue.after(1);
      return undefined;
    }
    const uid = job?.metadata.uid;
    if (!job || uid === undefined || !isJobOf(run, job)) {
      // One of that name is somebody else's, or is being deleted.
      context.requeue.after(1_000);
      return undefined;
    }
    if (job.metadata.annotations?.[annotations.settingsHash] !== deployment.settingsHash) {
      // An admission that was interrupted has created it, of the version that served then. One that it has recorded starts.
      const live = await this.#objects.live(this.#objects.runs, refOf(run), context.signal);
      if (live?.status?.jobUid !== undefined) {
        context.requeue.after(1);
        return undefined;
      }
      await this.#objects.remove(this.#objects.jobs, job, context.signal, { unchanged: true });
      context.requeue.after(1_000);
      return undefined;
    }
    const now = clock.now();
    const pricing = { admittedAt: now, plan: plan.plan, pricePerMinute: priceOfMinute(plan) };
    const { reference, digest } = deployment.image;
    const image = { reference, ...(digest === undefined ? {} : { digest }) };
    const recorded = { pricing, jobUid: uid, deployment: deployment.id, image };
    const admitted = await this.#objects.writeStatus(run, oneOffAdmitted(run, recorded, now), context.signal);
    context.requeue.after(1);
    return admitted;
  }

  /** Creates its Job, or reads the one of an admission that was interrupted. */
  async #job(run: JobRun, { app, plan, deployment }: Serving, signal: AbortSignal): Promise<Job | undefined> {
    const { settings } = this.#deps;
    const { jobs } = this.#objects;
    const version = { plan: plan.plan, settingsHash: deployment.settingsHash };
    const desired = oneOffJob(run, app, version, {
      timeoutSeconds: Math.ceil(limitMsOf(run, settings) / 1_000),
      startDeadlineSeconds: Math.ceil(settings.startDeadlineMs / 1_000),
    });
    return (
      (await this.#objects.create(jobs, desired, signal)) ??
      (await this.#objects.live(jobs, refOf(run), signal))
    );
  }

  #active(run: JobRun): OneOffView["active"] {
    const { runs } = this.#deps.stores;
    const others = (all: readonly JobRun[]) =>
      all.filter(
        (one) =>
          one.metadata.name !== run.metadata.name &&
          isOneOff(one) &&
          !isOver(one) &&
          admissionTime(one, undefined),
      ).length;
    return {
      project: others(runs.byIndex(BY_PROJECT, refKey(projectOfRun(run)))),
      organization: others(runs.list(run.metadata.namespace)),
    };
  }
}

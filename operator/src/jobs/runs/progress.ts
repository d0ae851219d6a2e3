/** Reconciles one admitted run until it has ended. */

import { refOf } from "@slipway/controller-runtime";
import { type JobRun, organizationOfNamespace, type Project } from "@slipway/crds";
import { type ContainerFacts, type RunPod, readContainer } from "./cluster.ts";
import { completionOf } from "./completion.ts";
import type { JobRunDependencies, RunContext } from "./context.ts";
import { evaluateRun } from "./evaluation.ts";
import { logSourceOf } from "./log-archiver.ts";
import type { RunObjects } from "./objects.ts";
import { type Active, pricingIn, RunObservation, type Snapshot, viewOf } from "./observation.ts";
import { dateOf, hasCondition, limitMsOf } from "./run.ts";
import { JOB_DELETION_GRACE_MS, POLL_INTERVAL_MS } from "./settings.ts";
import { ended, neverStarted } from "./status.ts";

type Ended = Extract<ContainerFacts, { state: "ended" }>;

export class RunProgress {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;
  readonly #observation: RunObservation;

  constructor(deps: JobRunDependencies, objects: RunObjects) {
    this.#deps = deps;
    this.#objects = objects;
    this.#observation = new RunObservation(deps, objects);
  }

  /** Reconciles an admitted run that has not ended. Returns it as it is then. */
  async reconcile(run: JobRun, project: Project | undefined, context: RunContext): Promise<JobRun> {
    const ref = refOf(run);
    const job = this.#objects.jobs.store.get(ref.namespace, ref.name);
    const pod = podOf(run, this.#objects.podsOf(ref));
    return await this.#step(run, { project, job, pod }, context, true);
  }

  async #step(run: JobRun, seen: Snapshot, context: RunContext, fromWatch: boolean): Promise<JobRun> {
    const evaluation = evaluateRun({ ...viewOf(this.#deps, run, seen), settings: this.#deps.settings });
    switch (evaluation.is) {
      case "ended":
        return await this.#finish(run, evaluation.facts, seen, context);
      case "missing":
        return fromWatch
          ? await this.#readLive(run, seen, context)
          : await this.#handleMissingPod(run, seen, context);
      default:
        return await this.#follow(run, evaluation, seen, context);
    }
  }

  /** The pod is missing: the cache may be stale. */
  async #readLive(run: JobRun, seen: Snapshot, context: RunContext): Promise<JobRun> {
    const ref = refOf(run);
    const job = await this.#objects.live(this.#objects.jobs, ref, context.signal);
    const pods = await this.#objects.livePodsOf(ref, context.signal);
    const pod = podOf(run, pods);
    const others = pods.filter((other) => other !== pod);
    return await this.#step(run, { ...seen, job, pod, others }, context, false);
  }

  /**
   * The pod does not exist. Pods that its Job has created in its place are deleted immediately; the run has ended only once the
   * Job can create none any more and none of them runs.
   */
  async #handleMissingPod(run: JobRun, seen: Snapshot, { signal, requeue }: RunContext): Promise<JobRun> {
    const { job, others = [] } = seen;
    if (job) {
      await this.#objects.remove(this.#objects.jobs, job, signal);
    }
    const running = others.filter((pod) => readContainer(pod).state !== "ended");
    for (const pod of running) {
      await this.#objects.remove(this.#objects.pods, pod, signal);
    }
    const goingSince = dateOf(job?.metadata.deletionTimestamp);
    const now = this.#deps.clock.now().getTime();
    if (job && (!goingSince || now - goingSince.getTime() < JOB_DELETION_GRACE_MS)) {
      requeue.after(JOB_DELETION_GRACE_MS);
      return run;
    }
    if (running.length > 0) {
      requeue.after(POLL_INTERVAL_MS);
      return run;
    }
    return await this.#finish(run, undefined, seen, { signal, requeue });
  }

  /** Records the observation, then stops the run where that is due: the reason is visible before the stop. */
  async #follow(
    run: JobRun,
    active: Active,
    seen: Snapshot,
    { signal, requeue }: RunContext,
  ): Promise<JobRun> {
    const now = this.#deps.clock.now();
    const followed = this.#followLog(run, active, seen.pod);
    const observedRun = await this.#observation.record(run, active, seen, { signal, requeue });
    if (active.stop) {
      await followed;
      if (seen.pod) {
        await this.#objects.remove(this.#objects.pods, seen.pod, signal);
      } else if (seen.job) {
        await this.#objects.remove(this.#objects.jobs, seen.job, signal);
      }
      requeue.after(POLL_INTERVAL_MS);
    } else {
      requeue.at(active.stopAt, now);
    }
    return observedRun;
  }

  /** Reads the last output of a container that is being stopped. Never rejects, and lasts a second at most. */
  async #followLog(run: JobRun, active: Active, pod: RunPod | undefined): Promise<void> {
    const stops = active.stop || pod?.metadata.deletionTimestamp !== undefined;
    if (!pod || !stops || active.is !== "running" || active.nodeSilent) {
      return;
    }
    const log = logSourceOf(run, pod.metadata.name);
    if (log) {
      await this.#deps.logArchiver.follow(run.metadata.uid ?? "", log);
    }
  }

  /** Writes how the run ended, once. */
  async #finish(
    run: JobRun,
    facts: Ended | undefined,
    seen: Snapshot,
    { signal }: RunContext,
  ): Promise<JobRun> {
    const { clock, metrics, samples, settings } = this.#deps;
    const stoppedAtLimit = hasCondition(run, "Cancelling", "True", "DeadlineExceeded");
    const { admittedAt: since, now } = viewOf(this.#deps, run, seen);
    const end = completionOf(run, facts, {
      limitMs: limitMsOf(run, settings),
      stoppedAtLimit,
      admittedAt: since,
      now,
    });
    if (!end) {
      const written = await this.#objects.writeStatus(run, neverStarted(run, clock.now()), signal);
      metrics.runEnded(written.status?.phase === "cancelled" ? "cancelled" : "never_started");
      return written;
    }
    const status = ended(
      run,
      end,
      {
        pricing: pricingIn(this.#deps, run, seen),
        jobUid: seen.job?.metadata.uid,
        pod: seen.pod,
        metrics: samples.finish(run.metadata.uid ?? "", { ...end, before: run.status?.metrics }),
      },
      clock.now(),
    );
    const written = await this.#objects.writeStatus(run, status, signal);
    metrics.runEnded(end.phase);
    return written;
  }
}

/** The pod of a run: the recorded one, or the first that its Job created. */
export function podOf({ status }: JobRun, pods: readonly RunPod[]): RunPod | undefined {
  if (status?.podUid === undefined) {
    return pods[0];
  }
  return pods.find(({ metadata }) => metadata.uid === status.podUid);
}

/** The organization that a run is charged to. */
export function organizationOf({ metadata }: JobRun): string | undefined {
  return organizationOfNamespace(metadata.namespace ?? "");
}

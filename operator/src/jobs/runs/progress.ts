/** Reconciles one admitted run until it has ended. */

import { refOf } from "@slipway/controller-runtime";
import { type JobRun, organizationOfNamespace, type Project } from "@slipway/crds";
import { RetryableError } from "../../reconcile-errors.ts";
import { isReady, type Job, type RunNode, type RunPod, readySince } from "./cluster.ts";
import { completionOf, timesOf } from "./completion.ts";
import { type ContainerFacts, readContainer } from "./container.ts";
import type { JobRunDependencies, RunContext } from "./context.ts";
import { evaluateRun, type RunEvaluation } from "./evaluation.ts";
import { logSourceOf } from "./log-archiver.ts";
import type { RunObjects } from "./objects.ts";
import { pricingOfRun } from "./pricing.ts";
import { admissionTime, dateOf, hasCondition } from "./run.ts";
import { HEARTBEAT_MS, JOB_DELETION_GRACE_MS, NODE_TRUST_DELAY_MS, POLL_INTERVAL_MS } from "./settings.ts";
import { ended, neverStarted, observed, type Pricing } from "./status.ts";

type Active = Extract<RunEvaluation, { is: "pending" | "running" }>;
type Ended = Extract<ContainerFacts, { state: "ended" }>;

interface Snapshot {
  project: Project | undefined;
  job: Job | undefined;
  pod: RunPod | undefined;
  /** Pods that its Job has created since the run's own was deleted by force; known after a live read. */
  others?: readonly RunPod[];
}

export class RunProgress {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;

  constructor(deps: JobRunDependencies, objects: RunObjects) {
    this.#deps = deps;
    this.#objects = objects;
  }

  /** Reconciles an admitted run that has not ended. Returns it as it is then. */
  async reconcile(run: JobRun, project: Project | undefined, context: RunContext): Promise<JobRun> {
    const ref = refOf(run);
    const job = this.#objects.jobs.store.get(ref.namespace, ref.name);
    const pod = podOf(run, this.#objects.podsOf(ref));
    return await this.#step(run, { project, job, pod }, context, true);
  }

  async #step(run: JobRun, seen: Snapshot, context: RunContext, fromWatch: boolean): Promise<JobRun> {
    const evaluation = evaluateRun({ ...this.#view(run, seen), settings: this.#deps.settings });
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

  #view(run: JobRun, { job, pod }: Snapshot) {
    const node = this.#deps.stores.nodes.get(undefined, pod?.spec?.nodeName ?? "");
    const since = admissionTime(run, job) ?? dateOf(run.metadata.creationTimestamp) ?? new Date(0);
    return { run, job, pod, node, admittedAt: since, now: this.#deps.clock.now() };
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
    const observedRun = await this.#recordObservation(run, active, seen, { signal, requeue });
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

  async #recordObservation(
    run: JobRun,
    active: Active,
    seen: Snapshot,
    { signal, requeue }: RunContext,
  ): Promise<JobRun> {
    const now = this.#deps.clock.now();
    const base = {
      pricing: this.#pricing(run, seen),
      jobUid: seen.job?.metadata.uid,
      pod: seen.pod,
      nodeSilent: active.nodeSilent,
      overLimit: active.is === "running" && active.overLimit,
    };
    if (active.is === "pending") {
      // The client of a manual run waits for its admission; for a scheduled one the first write is that it runs.
      const worth =
        run.spec.trigger === "manual" || run.status !== undefined || active.stop || active.nodeSilent;
      return worth ? await this.#objects.writeStatus(run, observed(run, base, now), signal) : run;
    }
    const startedAt = this.#startOf(run, active.startedAt, seen);
    this.#sample(run, seen.pod, startedAt);
    const node = this.#deps.stores.nodes.get(undefined, seen.pod?.spec?.nodeName ?? "");
    const from = trustedSince(node, startedAt);
    const believed = !active.nodeSilent && now >= from;
    const seenAt = believed ? await this.#seenRunning(run, seen, startedAt, signal) : undefined;
    if (believed) {
      requeue.after(heartbeatIn(run, seenAt, now));
    } else if (!active.nodeSilent) {
      requeue.at(from, now);
    }
    const metrics = seenAt ? this.#deps.samples.read(run.metadata.uid ?? "") : undefined;
    return await this.#objects.writeStatus(
      run,
      observed(run, { ...base, startedAt, seenAt, metrics }, now),
      signal,
    );
  }

  /** The container's start, by its node; where that is impossible, the one written first, so that it does not move with time. */
  #startOf(run: JobRun, reported: Date, seen: Snapshot): Date {
    const startedAt = timesOf(reported, undefined, this.#view(run, seen))?.startedAt ?? reported;
    const written = dateOf(run.status?.startedAt);
    return startedAt.getTime() === reported.getTime() ? reported : (written ?? startedAt);
  }

  /**
   * When the container was observed running, if that has to be written. A heartbeat reads pod and node live: a watch may be
   * behind, and a pod stays `running` while its node is not ready.
   */
  async #seenRunning(
    run: JobRun,
    { pod }: Snapshot,
    startedAt: Date,
    signal: AbortSignal,
  ): Promise<Date | undefined> {
    const now = this.#deps.clock.now();
    const last = dateOf(run.status?.lastObservedRunningAt);
    if (!pod) {
      return undefined;
    }
    if (!last) {
      return now;
    }
    if (now.getTime() - last.getTime() < HEARTBEAT_MS) {
      return undefined;
    }
    const [live, node] = await Promise.all([
      this.#objects.live(this.#objects.pods, refOf(pod), signal),
      this.#objects.live(this.#objects.nodes, { name: pod.spec?.nodeName ?? "" }, signal),
    ]);
    const same = live !== undefined && live.metadata.uid === pod.metadata.uid;
    if (!same || readContainer(live).state !== "running") {
      return undefined;
    }
    return isReady(node) && now >= trustedSince(node, startedAt) ? now : undefined;
  }

  #sample(run: JobRun, pod: RunPod | undefined, startedAt: Date): void {
    const { uid: podUid, name: podName, namespace } = pod?.metadata ?? {};
    const nodeName = pod?.spec?.nodeName;
    if (!podUid || !podName || !namespace || !nodeName) {
      return;
    }
    const before = run.status?.metrics;
    this.#deps.samples.follow({
      key: run.metadata.uid ?? "",
      nodeName,
      namespace,
      podName,
      podUid,
      startedAt,
      ...(before ? { before } : {}),
    });
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
    const { admittedAt: since, now } = this.#view(run, seen);
    const end = completionOf(run, facts, {
      limitMs: settings.limitMs,
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
        pricing: this.#pricing(run, seen),
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

  #pricing(run: JobRun, { job, project }: Snapshot): Pricing {
    const pricing = pricingOfRun(run, job, project, this.#deps.catalog());
    if (pricing) {
      return pricing;
    }
    throw new RetryableError(
      "UnknownPlan",
      "The price of a run is known to nobody; its plan is not in the catalog.",
    );
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

/**
 * From when on a pod's state `running` is trusted. A node that crashed is ready again before it knows which containers it has
 * lost; those started since then it does know.
 */
function trustedSince(node: RunNode | undefined, startedAt: Date): Date {
  const since = readySince(node);
  if (!since || startedAt >= since) {
    return new Date(0);
  }
  return new Date(since.getTime() + NODE_TRUST_DELAY_MS);
}

function heartbeatIn({ status }: JobRun, seenAt: Date | undefined, now: Date): number {
  const last = seenAt ?? dateOf(status?.lastObservedRunningAt) ?? now;
  return Math.max(last.getTime() + HEARTBEAT_MS - now.getTime(), 1_000);
}

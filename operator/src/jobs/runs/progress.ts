/** Follows one run that was let go, until it has ended. */

import { refOf } from "@slipway/controller-runtime";
import { type JobRun, organizationOfNamespace, type Project } from "@slipway/crds";
import { RetryableError } from "../../reconcile-errors.ts";
import { isReady, type Job, type RunNode, type RunPod, readySince } from "./cluster.ts";
import { dateOf, endOf, timesOf } from "./completion.ts";
import { type ContainerFacts, readContainer } from "./container.ts";
import type { JobRunDependencies } from "./context.ts";
import { type Judgement, judge } from "./evaluation.ts";
import type { RunObjects } from "./objects.ts";
import { termsOfRun } from "./pricing.ts";
import { letGoAt, stands } from "./run.ts";
import { HEARTBEAT_MS, JOB_SETTLE_MS, LOOK_AGAIN_MS, NODE_SETTLE_MS } from "./settings.ts";
import { ended, neverStarted, observed, type Terms } from "./status.ts";
import { toCapture } from "./to-capture.ts";
import type { WakeUp } from "./wake-up.ts";

/** What one step is given. */
export interface RunContext {
  signal: AbortSignal;
  wake: WakeUp;
}

type Going = Extract<Judgement, { is: "pending" | "running" }>;
type Ended = Extract<ContainerFacts, { state: "ended" }>;

interface Seen {
  project: Project | undefined;
  job: Job | undefined;
  pod: RunPod | undefined;
  /** Pods that its Job has made since the run's own was taken away by force; known once it was looked live. */
  others?: readonly RunPod[];
}

export class RunProgress {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;

  constructor(deps: JobRunDependencies, objects: RunObjects) {
    this.#deps = deps;
    this.#objects = objects;
  }

  /** Brings a run that was let go and has not ended as far as it can be brought now. Returns it as it is then. */
  async bring(run: JobRun, project: Project | undefined, context: RunContext): Promise<JobRun> {
    const ref = refOf(run);
    const job = this.#objects.jobs.store.get(ref.namespace, ref.name);
    const pod = podOf(run, this.#objects.podsOf(ref));
    return await this.#step(run, { project, job, pod }, context, true);
  }

  async #step(run: JobRun, seen: Seen, context: RunContext, fromWatch: boolean): Promise<JobRun> {
    const judgement = judge({ ...this.#view(run, seen), settings: this.#deps.settings });
    switch (judgement.is) {
      case "ended":
        return await this.#finish(run, judgement.facts, seen, context);
      case "missing":
        return fromWatch ? await this.#lookLive(run, seen, context) : await this.#vanish(run, seen, context);
      default:
        return await this.#follow(run, judgement, seen, context);
    }
  }

  #view(run: JobRun, { job, pod }: Seen) {
    const node = this.#deps.stores.nodes.get(undefined, pod?.spec?.nodeName ?? "");
    const since = letGoAt(run, job) ?? dateOf(run.metadata.creationTimestamp) ?? new Date(0);
    return { run, job, pod, node, letGoAt: since, now: this.#deps.clock.now() };
  }

  /** A pod is missed: what the watch told may be old. */
  async #lookLive(run: JobRun, seen: Seen, context: RunContext): Promise<JobRun> {
    const ref = refOf(run);
    const job = await this.#objects.live(this.#objects.jobs, ref, context.signal);
    const pods = await this.#objects.livePodsOf(ref, context.signal);
    const pod = podOf(run, pods);
    const others = pods.filter((other) => other !== pod);
    return await this.#step(run, { ...seen, job, pod, others }, context, false);
  }

  /**
   * There is no pod. What its Job has made in its place is stopped at once; only once the Job can make none any more, and none
   * that it made runs, has the run ended.
   */
  async #vanish(run: JobRun, seen: Seen, { signal, wake }: RunContext): Promise<JobRun> {
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
    if (job && (!goingSince || now - goingSince.getTime() < JOB_SETTLE_MS)) {
      wake.in(JOB_SETTLE_MS);
      return run;
    }
    if (running.length > 0) {
      wake.in(LOOK_AGAIN_MS);
      return run;
    }
    return await this.#finish(run, undefined, seen, { signal, wake });
  }

  /** Tells what is seen, and stops what has to be stopped; in this order, so that everybody knows why. */
  async #follow(run: JobRun, going: Going, seen: Seen, { signal, wake }: RunContext): Promise<JobRun> {
    const now = this.#deps.clock.now();
    const followed = this.#followLog(run, going, seen.pod);
    const told = await this.#tell(run, going, seen, { signal, wake });
    if (going.stop) {
      await followed;
      if (seen.pod) {
        await this.#objects.remove(this.#objects.pods, seen.pod, signal);
      } else if (seen.job) {
        await this.#objects.remove(this.#objects.jobs, seen.job, signal);
      }
      wake.in(LOOK_AGAIN_MS);
    } else {
      wake.at(going.stopAt, now);
    }
    return told;
  }

  /** What a container that is being stopped writes last is read while it can be. Never rejects, and takes a second at most. */
  async #followLog(run: JobRun, going: Going, pod: RunPod | undefined): Promise<void> {
    const stops = going.stop || pod?.metadata.deletionTimestamp !== undefined;
    if (!pod || !stops || going.is !== "running" || going.nodeSilent) {
      return;
    }
    const log = toCapture(run, pod.metadata.name);
    if (log) {
      await this.#deps.capturer.follow(run.metadata.uid ?? "", log);
    }
  }

  async #tell(run: JobRun, going: Going, seen: Seen, { signal, wake }: RunContext): Promise<JobRun> {
    const now = this.#deps.clock.now();
    const base = {
      terms: this.#terms(run, seen),
      jobUid: seen.job?.metadata.uid,
      pod: seen.pod,
      nodeSilent: going.nodeSilent,
      overLimit: going.is === "running" && going.overLimit,
    };
    if (going.is === "pending") {
      // Whoever asked for the run waits to hear that it was admitted; otherwise the first word is that it runs.
      const worth =
        run.spec.trigger === "manual" || run.status !== undefined || going.stop || going.nodeSilent;
      return worth ? await this.#objects.writeStatus(run, observed(run, base, now), signal) : run;
    }
    const startedAt = this.#startOf(run, going.startedAt, seen);
    this.#sample(run, seen.pod, startedAt);
    const node = this.#deps.stores.nodes.get(undefined, seen.pod?.spec?.nodeName ?? "");
    const from = believedFrom(node, startedAt);
    const believed = !going.nodeSilent && now >= from;
    const seenAt = believed ? await this.#seenRunning(run, seen, startedAt, signal) : undefined;
    if (believed) {
      wake.in(heartbeatIn(run, seenAt, now));
    } else if (!going.nodeSilent) {
      wake.at(from, now);
    }
    const metrics = seenAt ? this.#deps.samples.read(run.metadata.uid ?? "") : undefined;
    return await this.#objects.writeStatus(
      run,
      observed(run, { ...base, startedAt, seenAt, metrics }, now),
      signal,
    );
  }

  /** The container's start, by its node; where that cannot be, as it was written first, so that it does not move on with time. */
  #startOf(run: JobRun, told: Date, seen: Seen): Date {
    const startedAt = timesOf(told, undefined, this.#view(run, seen))?.startedAt ?? told;
    const written = dateOf(run.status?.startedAt);
    return startedAt.getTime() === told.getTime() ? told : (written ?? startedAt);
  }

  /**
   * When the container was seen running, if that has to be written. A heartbeat asks live, for the node too: a watch may be
   * behind, and a pod says that it runs for as long as its node is silent.
   */
  async #seenRunning(
    run: JobRun,
    { pod }: Seen,
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
    return isReady(node) && now >= believedFrom(node, startedAt) ? now : undefined;
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
  async #finish(run: JobRun, facts: Ended | undefined, seen: Seen, { signal }: RunContext): Promise<JobRun> {
    const { clock, metrics, samples, settings } = this.#deps;
    const stoppedAtLimit = stands(run, "Cancelling", "True", "DeadlineExceeded");
    const { letGoAt: since, now } = this.#view(run, seen);
    const end = endOf(run, facts, { limitMs: settings.limitMs, stoppedAtLimit, letGoAt: since, now });
    if (!end) {
      const written = await this.#objects.writeStatus(run, neverStarted(run, clock.now()), signal);
      metrics.runEnded(written.status?.phase === "cancelled" ? "cancelled" : "never_started");
      return written;
    }
    const status = ended(
      run,
      end,
      {
        terms: this.#terms(run, seen),
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

  #terms(run: JobRun, { job, project }: Seen): Terms {
    const terms = termsOfRun(run, job, project, this.#deps.catalog());
    if (terms) {
      return terms;
    }
    throw new RetryableError(
      "UnknownPlan",
      "The price of a run is known to nobody; its plan is not in the catalog.",
    );
  }
}

/** The pod of a run: the one that it had, or the first that its Job made. */
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
 * From when on a pod's word that its container runs counts. A node that crashed is ready again before it knows what it has
 * lost; what has started since then it does know.
 */
function believedFrom(node: RunNode | undefined, startedAt: Date): Date {
  const since = readySince(node);
  if (!since || startedAt >= since) {
    return new Date(0);
  }
  return new Date(since.getTime() + NODE_SETTLE_MS);
}

function heartbeatIn({ status }: JobRun, seenAt: Date | undefined, now: Date): number {
  const last = seenAt ?? dateOf(status?.lastObservedRunningAt) ?? now;
  return Math.max(last.getTime() + HEARTBEAT_MS - now.getTime(), 1_000);
}

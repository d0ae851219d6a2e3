/** Records what is observed of an admitted run that has not ended. */

import { refOf } from "@slipway/controller-runtime";
import type { JobRun, Project } from "@slipway/crds";
import { RetryableError } from "../../reconcile-errors.ts";
import { isReady, type Job, type RunNode, type RunPod, readContainer, readySince } from "./cluster.ts";
import { timesOf } from "./completion.ts";
import type { JobRunDependencies, RunContext } from "./context.ts";
import type { RunEvaluation } from "./evaluation.ts";
import type { RunObjects } from "./objects.ts";
import { pricingOfRun } from "./pricing.ts";
import { admissionTime, dateOf } from "./run.ts";
import { HEARTBEAT_MS, NODE_TRUST_DELAY_MS } from "./settings.ts";
import { observed, type Pricing } from "./status.ts";

export type Active = Extract<RunEvaluation, { is: "pending" | "running" }>;

/** What a reconcile has read of a run. */
export interface Snapshot {
  project: Project | undefined;
  job: Job | undefined;
  pod: RunPod | undefined;
  /** Pods that its Job has created since the run's own was deleted by force; known after a live read. */
  others?: readonly RunPod[];
}

export class RunObservation {
  readonly #deps: JobRunDependencies;
  readonly #objects: RunObjects;

  constructor(deps: JobRunDependencies, objects: RunObjects) {
    this.#deps = deps;
    this.#objects = objects;
  }

  /** Records that a run is pending or running, where that has to be written. */
  async record(
    run: JobRun,
    active: Active,
    seen: Snapshot,
    { signal, requeue }: RunContext,
  ): Promise<JobRun> {
    const now = this.#deps.clock.now();
    const base = {
      pricing: pricingIn(this.#deps, run, seen),
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
    const startedAt = timesOf(reported, undefined, viewOf(this.#deps, run, seen))?.startedAt ?? reported;
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
}

/** What a run is evaluated from. */
export function viewOf(
  deps: Pick<JobRunDependencies, "stores" | "clock">,
  run: JobRun,
  { job, pod }: Snapshot,
) {
  const node = deps.stores.nodes.get(undefined, pod?.spec?.nodeName ?? "");
  const since = admissionTime(run, job) ?? dateOf(run.metadata.creationTimestamp) ?? new Date(0);
  return { run, job, pod, node, admittedAt: since, now: deps.clock.now() };
}

/** @throws RetryableError when its plan is unknown */
export function pricingIn(
  deps: Pick<JobRunDependencies, "catalog">,
  run: JobRun,
  { job, project }: Snapshot,
): Pricing {
  const pricing = pricingOfRun(run, job, project, deps.catalog());
  if (pricing) {
    return pricing;
  }
  throw new RetryableError(
    "UnknownPlan",
    "The price of a run is known to nobody; its plan is not in the catalog.",
  );
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

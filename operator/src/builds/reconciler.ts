/** Reconciles one build from its request to its end. */

import {
  ensureFinalizer,
  type ObjectContext,
  objectReconciler,
  type Reconciler,
  type Result,
  removeFinalizer,
} from "@slipway/controller-runtime";
import {
  type Build,
  type BuildConditionCatalog,
  fieldManagers,
  finalizers,
  type Project,
} from "@slipway/crds";
import { buildResource } from "../resources.ts";
import { type ChargedTime, chargedTime, endedTime } from "./charged-time.ts";
import { patchProjectStatus } from "./cluster.ts";
import { BuildCompletion, projectOf } from "./completion.ts";
import { type Decision, decide, type Observation } from "./decide.ts";
import type { BuildDependencies } from "./dependencies.ts";
import { imageRepository } from "./desired/tasks.ts";
import { buildRow, changesRow } from "./ledger-row.ts";
import { BuildObserver, observedPod } from "./observer.ts";
import { hasNewer, isEnded } from "./queue.ts";
import { SourceUnavailableError } from "./sources.ts";
import { setBuildConditions } from "./status.ts";

const ENDED = { success: "Published", failed: "Failed", superseded: "Superseded" } as const;

type Context = ObjectContext<Build, BuildConditionCatalog>;

/** How often a pod's deletion is checked; it is also watched. */
const POD_DELETION_POLL_MS = 2_000;
/** A build is reconciled again after so long without any event. */
const RESYNC_INTERVAL_MS = 60_000;

export function buildReconciler(deps: BuildDependencies): Reconciler {
  const { client, clock, recorder, stores } = deps;
  const worker = new BuildReconciler(deps);
  const options = {
    client,
    resource: buildResource,
    store: stores.builds,
    fieldManager: fieldManagers.build,
  };
  const reconcile = objectReconciler<Build, BuildConditionCatalog>({
    ...options,
    clock,
    recorder,
    reconcile: async (build, context) => {
      if (!build.metadata.deletionTimestamp) {
        return worker.reconcile(build, context);
      }
      await worker.finalize(build, context);
      await removeFinalizer(build, finalizers.build, { ...options, signal: context.signal });
      return undefined;
    },
    summarize: (_, status, conditions) => setBuildConditions(conditions, status),
  });
  return async (ref, context) => {
    const build = stores.builds.get(ref.namespace, ref.name);
    if (build && !isEnded(build)) {
      await ensureFinalizer(build, finalizers.build, { ...options, signal: context.signal });
    }
    return reconcile(ref, context);
  };
}

class BuildReconciler {
  readonly #deps: BuildDependencies;
  readonly #completion: BuildCompletion;
  readonly #observer: BuildObserver;

  constructor(deps: BuildDependencies) {
    this.#deps = deps;
    this.#completion = new BuildCompletion(deps);
    this.#observer = new BuildObserver(deps);
  }

  async reconcile(build: Build, context: Context): Promise<Result | undefined> {
    const { clock } = this.#deps;
    const project = await this.#observer.project(build, context.signal);
    if (project && build.status?.phase === undefined) {
      // Lines of its log reference its row.
      await this.#deps.record(buildRow(build, project, { phase: "pending" }));
      await this.#recordLastBuild(build, project, context.signal);
      context.status.phase = "pending";
    }
    const observed = await this.#observer.observe(build, project, context.signal);
    const decision = decide(observed, this.#deps.settings());
    setTime(context.status, chargedTime(observed, decision));
    const result = await this.#execute(decision, observed, project, context);
    if (
      project &&
      !isEnded(build) &&
      changesRow(build.status, context.status) &&
      !isEnded({ ...build, status: context.status })
    ) {
      await this.#deps.record(buildRow(build, project, context.status));
    }
    context.log.debug({ decision: decision.do, at: clock.now() }, "build reconciled");
    return result;
  }

  /** Records the project's newest build in its status. @throws KubeError 409 when the project has changed since it was read */
  async #recordLastBuild(build: Build, project: Project, signal: AbortSignal): Promise<void> {
    const { name, namespace } = build.metadata;
    const { builds } = this.#deps.stores;
    if (projectOf(build, project) !== project || hasNewer(build, builds.list(namespace))) {
      return;
    }
    if (project.status?.build?.lastBuild === name) {
      return;
    }
    await patchProjectStatus(project, { build: { lastBuild: name } }, this.#deps, signal);
  }

  /** Stops a deleted build. */
  async finalize(build: Build, { status, signal }: Context): Promise<void> {
    const { cluster } = this.#deps;
    const pods = cluster.podsOfBuild(build);
    const project = await this.#observer.project(build, signal);
    if (isEnded(build)) {
      await cluster.remove(pods, signal);
      return;
    }
    const pod = pods.find(({ metadata }) => metadata.name === status.podName);
    const end = { do: "end", phase: "superseded" } as const;
    // One that an earlier try has removed ran until about then.
    const time = pod ? chargedTime({ build, pod: observedPod(pod) }, end) : status;
    await cluster.remove(pods, signal);
    setTime(status, this.#endedTime(time));
    await this.#completion.complete(build, project, status, end, signal);
  }

  #endedTime(time: ChargedTime): ChargedTime {
    const { settings, trustedClock } = this.#deps;
    const { deadlineSeconds } = settings().limits;
    return endedTime(time, { now: () => trustedClock.now(), deadlineSeconds });
  }

  async #execute(
    decision: Decision,
    { build, now, attempt }: Observation,
    project: Project | undefined,
    context: Context,
  ): Promise<Result | undefined> {
    const { status, conditions, signal } = context;
    const { cluster, settings } = this.#deps;
    switch (decision.do) {
      case "cleanUp":
        return this.#completion.cleanUp(build, signal);
      case "wait": {
        const { reason, report, step, afterMs } = decision;
        Object.assign(status, commitOf(report), step && { step });
        if (reason === "Publishing") {
          await cluster.remove(cluster.podsOfBuild(build), signal);
        }
        conditions.set({ type: "Ready", status: "False", reason });
        return { requeueAfterMs: Math.min(afterMs ?? RESYNC_INTERVAL_MS, RESYNC_INTERVAL_MS) };
      }
      case "deletePods":
        if (project) {
          await cluster.remove(cluster.podsOfProject(project), signal);
        }
        conditions.set({ type: "Ready", status: "False", reason: "Waiting" });
        return { requeueAfterMs: POD_DELETION_POLL_MS };
      case "start":
        return project && this.#start(build, project, decision.attempt, context);
      case "built": {
        const { digest } = decision.report;
        Object.assign(status, commitOf(decision.report), {
          step: "publish",
          image: { reference: imageRepository(build, settings()), digest },
        });
        conditions.set({ type: "Ready", status: "False", reason: "Publishing" });
        return { requeueAfterMs: 1 };
      }
      case "deployImage":
        if (project) {
          await this.#completion.deployImage(build, project, signal);
        }
        conditions.set({ type: "Ready", status: "False", reason: "Publishing" });
        return { requeueAfterMs: 1 };
      case "end": {
        Object.assign(status, commitOf(decision.report), decision.step && { step: decision.step });
        status.finishedAt = now.toISOString();
        setTime(status, this.#endedTime(status));
        // Its pods are deleted once this is recorded: until then only they have the reason.
        await this.#completion.complete(build, project, status, decision, signal, attempt);
        const isGood = decision.phase === "success";
        const reason = ENDED[decision.phase];
        const message = decision.failure?.message;
        conditions.set({ type: "Ready", status: isGood ? "True" : "False", reason, message });
        return { requeueAfterMs: RESYNC_INTERVAL_MS };
      }
    }
  }

  async #start(
    build: Build,
    project: Project,
    attempt: number,
    context: Context,
  ): Promise<Result | undefined> {
    const { clock, cluster, openSource, settings } = this.#deps;
    const { status, conditions, signal } = context;
    this.#observer.pendingStarts.reserve(build);
    try {
      const source = await openSource(build, signal);
      status.podName = await cluster.start({ build, project, attempt }, source, clock.now(), signal);
    } catch (error) {
      this.#observer.pendingStarts.release(build);
      if (!(error instanceof SourceUnavailableError)) {
        throw error;
      }
      const waited = clock.now().getTime() - Date.parse(build.metadata.creationTimestamp ?? "");
      if (error.passing && waited < settings().limits.deadlineSeconds * 1_000) {
        throw error;
      }
      status.finishedAt = clock.now().toISOString();
      status.step = "fetch";
      const decision = { do: "end", phase: "failed", failure: error.failure } as const;
      await this.#completion.complete(build, project, status, decision, signal, attempt);
      conditions.set({ type: "Ready", status: "False", reason: "Failed", message: error.failure.message });
      return { requeueAfterMs: RESYNC_INTERVAL_MS };
    }
    status.phase = "building";
    status.step = "fetch";
    status.startedAt ??= clock.now().toISOString();
    conditions.set({ type: "Ready", status: "False", reason: "Building" });
    return { requeueAfterMs: RESYNC_INTERVAL_MS };
  }
}

/** Of an attempt that is not charged nothing is left. */
function setTime(status: NonNullable<Build["status"]>, { ranFrom, ranUntil }: ChargedTime): void {
  delete status.ranFrom;
  delete status.ranUntil;
  Object.assign(status, ranFrom !== undefined && { ranFrom }, ranUntil !== undefined && { ranUntil });
}

function commitOf(report: { commitSha?: string; commitMessage?: string } | undefined) {
  return {
    ...(report?.commitSha === undefined ? {} : { commitSha: report.commitSha }),
    ...(report?.commitMessage === undefined ? {} : { commitMessage: report.commitMessage }),
  };
}

/** Brings one build from its request to its end, step by step. */

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
import { buildResource, projectResource } from "../resources.ts";
import { patchProject } from "./cluster.ts";
import { BuildEnds, projectOf } from "./completion.ts";
import { type Decision, decide, type Observed } from "./decide.ts";
import type { BuildDependencies } from "./dependencies.ts";
import { imageRepository } from "./desired/tasks.ts";
import { buildRow, tellsMore } from "./ledger-row.ts";
import type { LogSource } from "./log-follower.ts";
import { buildLabel, organizationOfBuild, podName, TRY } from "./names.ts";
import { type BuildPod, podState, startedContainers } from "./pod-state.ts";
import { hasNewer, isEnded, isItsTurn } from "./queue.ts";
import { projectView } from "./rollout.ts";
import { SourceUnavailable } from "./sources.ts";
import { Starts } from "./starts.ts";
import { setBuildConditions } from "./status.ts";

const ENDED = { success: "Published", failed: "Failed", superseded: "Superseded" } as const;

type Context = ObjectContext<Build, BuildConditionCatalog>;

/** A pod that is being stopped is looked at again after so long; its end is also told. */
const CLEARING_MS = 2_000;
/** So long a build is looked at again without any change. */
const LOOK_MS = 60_000;

export function buildReconciler(deps: BuildDependencies): Reconciler {
  const { client, clock, recorder, stores } = deps;
  const worker = new BuildWorker(deps);
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
        return worker.work(build, context);
      }
      await worker.remove(build, context);
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

class BuildWorker {
  readonly #deps: BuildDependencies;
  readonly #ends: BuildEnds;
  readonly #starts = new Starts();

  constructor(deps: BuildDependencies) {
    this.#deps = deps;
    this.#ends = new BuildEnds(deps);
  }

  async work(build: Build, context: Context): Promise<Result | undefined> {
    const { clock } = this.#deps;
    const project = await this.#project(build, context.signal);
    if (project && build.status?.phase === undefined) {
      // Lines of its log can only stand beside it.
      await this.#deps.record(buildRow(build, project, { phase: "pending" }));
      await this.#announce(build, project, context.signal);
      context.status.phase = "pending";
    }
    const observed = await this.#observe(build, project, context.signal);
    const decision = decide(observed, this.#deps.settings());
    const result = await this.#carryOut(decision, observed, project, context);
    if (
      project &&
      !isEnded(build) &&
      tellsMore(build.status, context.status) &&
      !isEnded({ ...build, status: context.status })
    ) {
      await this.#deps.record(buildRow(build, project, context.status));
    }
    context.log.debug({ decision: decision.do, at: clock.now() }, "build looked at");
    return result;
  }

  /** Tells the project which build is its newest. @throws KubeError 409 when the project has changed since it was read */
  async #announce(build: Build, project: Project, signal: AbortSignal): Promise<void> {
    const { name, namespace } = build.metadata;
    const { builds } = this.#deps.stores;
    if (projectOf(build, project) !== project || hasNewer(build, builds.list(namespace))) {
      return;
    }
    if (project.status?.build?.lastBuild === name) {
      return;
    }
    await patchProject(project, { build: { lastBuild: name } }, this.#deps, signal);
  }

  /** Nothing of a build that is deleted goes on. */
  async remove(build: Build, { status, signal }: Context): Promise<void> {
    const { cluster } = this.#deps;
    await cluster.remove(cluster.podsOfBuild(build), signal);
    const project = await this.#project(build, signal);
    if (!isEnded(build)) {
      await this.#ends.end(build, project, status, { do: "end", phase: "superseded" }, signal);
    }
  }

  /** A project that the watch does not tell of yet is not gone: its first build is asked for right after it. */
  async #project(
    { metadata: { namespace }, spec }: Build,
    signal: AbortSignal,
  ): Promise<Project | undefined> {
    const { client, stores } = this.#deps;
    const { name } = spec.projectRef;
    return (
      stores.projects.get(namespace, name) ??
      (await client.getOrUndefined<Project>(projectResource, { namespace, name }, { signal }))
    );
  }

  async #observe(build: Build, project: Project | undefined, signal: AbortSignal): Promise<Observed> {
    const { cluster, clock, follower, stores } = this.#deps;
    const attempt = attemptOf(build);
    const isOver = isEnded(build) || build.status?.step === "publish";
    const pod = attempt > 0 && !isOver ? await cluster.pod(podName(build, attempt), signal) : undefined;
    const others = project ? otherPods(cluster.podsOfProject(project), build, attempt) : [];
    const builds = stores.builds.list(build.metadata.namespace);
    return {
      build,
      hasNewer: hasNewer(build, builds),
      project: projectView(build, project),
      attempt,
      pod: pod && { state: podState(pod), createdAt: pod.metadata.creationTimestamp ?? "" },
      hasOtherPods: others.length > 0,
      isItsTurn: this.#isItsTurn(build),
      isLogKept: !pod || follower.follow(logSource(build, pod, attempt), startedContainers(pod)),
      now: clock.now(),
    };
  }

  #isItsTurn(build: Build): boolean {
    const { settings, stores } = this.#deps;
    if (isEnded(build)) {
      return false;
    }
    const { concurrency: organization, platformConcurrency: platform } = settings();
    const { builds, starting } = this.#starts.beside(build, stores.builds.list());
    return isItsTurn(build, builds, starting, { organization, platform });
  }

  async #carryOut(
    decision: Decision,
    { build, now, attempt }: Observed,
    project: Project | undefined,
    context: Context,
  ): Promise<Result | undefined> {
    const { status, conditions, signal } = context;
    const { cluster, settings } = this.#deps;
    switch (decision.do) {
      case "rest":
        return this.#ends.tidy(build, signal);
      case "wait": {
        const { reason, told, step, afterMs } = decision;
        Object.assign(status, commitOf(told), step && { step });
        if (reason === "Publishing") {
          await cluster.remove(cluster.podsOfBuild(build), signal);
        }
        conditions.set({ type: "Ready", status: "False", reason });
        return { requeueAfterMs: Math.min(afterMs ?? LOOK_MS, LOOK_MS) };
      }
      case "clear":
        if (project) {
          await cluster.remove(cluster.podsOfProject(project), signal);
        }
        conditions.set({ type: "Ready", status: "False", reason: "Waiting" });
        return { requeueAfterMs: CLEARING_MS };
      case "start":
        return project && this.#start(build, project, decision.attempt, context);
      case "built": {
        const { digest } = decision.told;
        Object.assign(status, commitOf(decision.told), {
          step: "publish",
          image: { reference: imageRepository(build, settings()), digest },
        });
        conditions.set({ type: "Ready", status: "False", reason: "Publishing" });
        return { requeueAfterMs: 1 };
      }
      case "handOver":
        if (project) {
          await this.#ends.handOver(build, project, signal);
        }
        conditions.set({ type: "Ready", status: "False", reason: "Publishing" });
        return { requeueAfterMs: 1 };
      case "end": {
        Object.assign(status, commitOf(decision.told), decision.step && { step: decision.step });
        status.finishedAt = now.toISOString();
        // Its pods go once this is told: until then they alone know why.
        await this.#ends.end(build, project, status, decision, signal, attempt);
        const isGood = decision.phase === "success";
        const reason = ENDED[decision.phase];
        const message = decision.failure?.message;
        conditions.set({ type: "Ready", status: isGood ? "True" : "False", reason, message });
        return { requeueAfterMs: LOOK_MS };
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
    this.#starts.begin(build);
    try {
      const source = await openSource(build, signal);
      status.podName = await cluster.start({ build, project, attempt }, source, clock.now(), signal);
    } catch (error) {
      this.#starts.fail(build);
      if (!(error instanceof SourceUnavailable)) {
        throw error;
      }
      const waited = clock.now().getTime() - Date.parse(build.metadata.creationTimestamp ?? "");
      if (error.passing && waited < settings().limits.deadlineSeconds * 1_000) {
        throw error;
      }
      status.finishedAt = clock.now().toISOString();
      status.step = "fetch";
      const decision = { do: "end", phase: "failed", failure: error.failure } as const;
      await this.#ends.end(build, project, status, decision, signal, attempt);
      conditions.set({ type: "Ready", status: "False", reason: "Failed", message: error.failure.message });
      return { requeueAfterMs: LOOK_MS };
    }
    status.phase = "building";
    status.step = "fetch";
    status.startedAt ??= clock.now().toISOString();
    conditions.set({ type: "Ready", status: "False", reason: "Building" });
    return { requeueAfterMs: LOOK_MS };
  }
}

/** Which try the status tells of; 0 before the first. */
export function attemptOf({ status }: Build): number {
  return Number(/-([0-9]+)$/.exec(status?.podName ?? "")?.[1] ?? 0);
}

/** Pods that are in the way: not the one that is followed, nor the next one, made by a process that could not tell of it. */
function otherPods(pods: readonly BuildPod[], build: Build, attempt: number): BuildPod[] {
  const label = buildLabel(build);
  return pods.filter(({ metadata }) => {
    const tried = Number(metadata.annotations?.[TRY]);
    const isOwn = metadata.name === podName(build, tried) && metadata.name.startsWith(label);
    return !(isOwn && (tried === attempt || tried === attempt + 1) && !metadata.deletionTimestamp);
  });
}

function commitOf(told: { commitSha?: string; commitMessage?: string } | undefined) {
  return {
    ...(told?.commitSha === undefined ? {} : { commitSha: told.commitSha }),
    ...(told?.commitMessage === undefined ? {} : { commitMessage: told.commitMessage }),
  };
}

export function logSource(build: Build, { metadata }: BuildPod, attempt: number): LogSource {
  return {
    organizationId: organizationOfBuild(build),
    projectId: build.spec.projectRef.name,
    buildId: build.metadata.name,
    namespace: metadata.namespace ?? "",
    podName: metadata.name,
    podUid: metadata.uid ?? "",
    attempt,
  };
}

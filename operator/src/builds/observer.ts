/** Reads what the reconciler of builds decides from, and what a rollout shows of a build's image in its project. */

import type { Build, Project } from "@slipway/crds";
import { rollbackOf } from "../projects/images/built-image.ts";
import { projectResource } from "../resources.ts";
import type { Observation, ProjectState } from "./decide.ts";
import type { BuildDependencies } from "./dependencies.ts";
import type { LogSource } from "./log-stream.ts";
import { ATTEMPT_ANNOTATION, buildLabel, organizationOfBuild, podName } from "./names.ts";
import { type BuildPod, podState, ranTime, startedContainers } from "./pod-state.ts";
import { hasNewer, isAdmissible, isEnded, PendingStarts, requestedAt } from "./queue.ts";

export class BuildObserver {
  readonly #deps: BuildDependencies;
  /** Builds that are being started, and whose pods the caches may not have yet. */
  readonly pendingStarts = new PendingStarts();

  constructor(deps: BuildDependencies) {
    this.#deps = deps;
  }

  /** A project that the cache lacks may exist: its first build is requested right after it. */
  async project({ metadata: { namespace }, spec }: Build, signal: AbortSignal): Promise<Project | undefined> {
    const { client, stores } = this.#deps;
    const { name } = spec.projectRef;
    return (
      stores.projects.get(namespace, name) ??
      (await client.getOrUndefined<Project>(projectResource, { namespace, name }, { signal }))
    );
  }

  /** Reads what a build is decided from. */
  async observe(build: Build, project: Project | undefined, signal: AbortSignal): Promise<Observation> {
    const { cluster, clock, follower, stores } = this.#deps;
    const attempt = attemptOf(build);
    const isOver = isEnded(build) || build.status?.step === "publish";
    const pod = attempt > 0 && !isOver ? await cluster.pod(podName(build, attempt), signal) : undefined;
    const others = project ? otherPods(cluster.podsOfProject(project), build, attempt) : [];
    const builds = stores.builds.list(build.metadata.namespace);
    return {
      build,
      hasNewer: hasNewer(build, builds),
      project: projectState(build, project),
      attempt,
      pod: pod && observedPod(pod),
      hasOtherPods: others.length > 0,
      isAdmissible: this.#isItsTurn(build),
      isLogStored: !pod || follower.follow(logSource(build, pod, attempt), startedContainers(pod)),
      now: clock.now(),
    };
  }

  #isItsTurn(build: Build): boolean {
    const { settings, stores } = this.#deps;
    if (isEnded(build)) {
      return false;
    }
    const { concurrency: organization, platformConcurrency: platform } = settings();
    const { builds, starting } = this.pendingStarts.competing(build, stores.builds.list());
    return isAdmissible(build, builds, starting, { organization, platform });
  }
}

/** What is decided from a build's pod. */
export function observedPod(pod: BuildPod): NonNullable<Observation["pod"]> {
  const state = podState(pod);
  return { state, createdAt: pod.metadata.creationTimestamp ?? "", ran: ranTime(pod, state) };
}

/** Number of the attempt in the status; 0 before the first. */
function attemptOf({ status }: Build): number {
  return Number(/-([0-9]+)$/.exec(status?.podName ?? "")?.[1] ?? 0);
}

/** Pods that block the next attempt: not the current one, nor the next one, created by a process that crashed before recording it. */
function otherPods(pods: readonly BuildPod[], build: Build, attempt: number): BuildPod[] {
  const label = buildLabel(build);
  return pods.filter(({ metadata }) => {
    const podAttempt = Number(metadata.annotations?.[ATTEMPT_ANNOTATION]);
    const isOwn = metadata.name === podName(build, podAttempt) && metadata.name.startsWith(label);
    return !(isOwn && (podAttempt === attempt || podAttempt === attempt + 1) && !metadata.deletionTimestamp);
  });
}

function logSource(build: Build, { metadata }: BuildPod, attempt: number): LogSource {
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

/** @param project undefined when it was deleted, or another one has its id */
export function projectState(build: Build, project: Project | undefined): ProjectState | undefined {
  if (!project || project.metadata.deletionTimestamp) {
    return undefined;
  }
  const { imageBuild, imageBuildAt } = project.status?.build ?? {};
  const at = requestedAt(build);
  // A rollback to an earlier version supersedes builds in progress.
  const isRolledBack = (rollbackOf(project)?.at ?? "") >= at;
  const isDeployed = !isRolledBack && imageBuild === build.metadata.name;
  const isSuperseded =
    isRolledBack ||
    (!isDeployed &&
      imageBuild !== undefined &&
      (imageBuildAt ?? "") >= at &&
      !(imageBuildAt === at && imageBuild < build.metadata.name));
  return { isDeployed, isSuperseded, ...rollout(build, project) };
}

/** The state of the digest's rollout: its deployment has ended, or the project does not deploy it now. */
function rollout(build: Build, { spec, status }: Project): Pick<ProjectState, "rollout" | "rolloutMessage"> {
  const digest = build.status?.image?.digest;
  if (digest === undefined) {
    return { rollout: "waiting" };
  }
  // A job's next run uses it; a paused project does when it is resumed.
  if (spec.type === "job" || spec.paused) {
    return { rollout: "served" };
  }
  const newest = status?.deployments?.[0];
  if (newest?.image.digest !== digest) {
    return { rollout: "waiting" };
  }
  switch (newest.status) {
    case "succeeded":
      return { rollout: "served" };
    case "failed":
      return { rollout: "failed", rolloutMessage: newest.message };
    default:
      return { rollout: "waiting" };
  }
}

/** Reconciles sources that did not come through `/v1`, or whose first build it could not start. */

import type { KubeClient, Reconciler, Store } from "@slipway/controller-runtime";
import {
  type Build,
  type BuildRequest,
  buildIdOf,
  fieldManagers,
  firstBuildId,
  labels,
  nextSourceRevision,
  organizationOfNamespace,
  type Project,
  recordedSource,
  sourceRevision,
} from "@slipway/crds";
import { triggerMode } from "@slipway/git";
import type { Clock } from "@slipway/process";
import { projectResource } from "../resources.ts";
import { createBuild } from "./triggers.ts";

export interface SourceReconcilerOptions {
  client: KubeClient;
  clock: Clock;
  projects: Store<Project>;
  builds: Store<Build>;
  /** Whether the history has any build of a project; throws when the ledger cannot be reached. */
  hasBuilds: (project: Project, organizationId: string) => Promise<boolean>;
}

/** Reconciles Projects. A build is requested before the revision is recorded, under a deterministic name: once, also after a crash. */
export function sourceReconciler(options: SourceReconcilerOptions): Reconciler {
  const { client, clock, projects, builds, hasBuilds } = options;
  return async ({ namespace, name }, { log, signal }) => {
    const project = projects.get(namespace, name);
    const organizationId = organizationOfNamespace(namespace ?? "");
    if (!project || organizationId === undefined) {
      return undefined;
    }
    const hasBuild =
      !needsBuildHistory(project) ||
      builds.list(namespace).some((build) => isOf(build, project)) ||
      (await hasBuilds(project, organizationId));
    const decision = decideSource(project, hasBuild, clock.now());
    if (decision.do === "wait") {
      return { requeueAfterMs: decision.afterMs };
    }
    if (decision.do === "nothing") {
      return undefined;
    }
    if (decision.build) {
      const { id, request } = decision.build;
      const isNew = await createBuild(options, [project, id, request], signal);
      if (isNew) {
        log.info({ build: id, trigger: request.triggeredBy }, "a source has started a build");
      }
    }
    if (recordedSource(project) === "now") {
      return undefined;
    }
    const { resourceVersion } = project.metadata;
    const spec = { sourceRevision: nextSourceRevision(project.spec, project) };
    const patch = { metadata: { resourceVersion }, spec };
    const written = { fieldManager: fieldManagers.build, signal };
    projects.observe(await client.patch<Project>(projectResource, { namespace, name }, patch, written));
    return undefined;
  };
}

const isOf = ({ metadata, spec }: Build, project: Project): boolean =>
  spec.projectRef.name === project.metadata.name &&
  (metadata.ownerReferences ?? []).every(
    ({ kind, uid }) => kind !== "Project" || uid === project.metadata.uid,
  );

// Decides on builds for a project's source that did not come through `/v1`. Pure.

/** How long `/v1` may take to request the first build of a project that it has created. */
export const API_CREATION_GRACE_MS = 60_000;

export type SourceDecision =
  | { do: "nothing" }
  | { do: "wait"; afterMs: number }
  /** Records the revision, after requesting the build if there is one. */
  | { do: "record"; build?: { id: string; request: BuildRequest } };

/** Whether the decision depends on the history in the ledger. */
export function needsBuildHistory(project: Project): boolean {
  const { spec, status } = project;
  if (spec.source === undefined && spec.github === undefined) {
    return false;
  }
  if (status?.build?.lastBuild !== undefined || status?.build?.imageBuild !== undefined) {
    return false;
  }
  return recordedSource(project) !== "now" || isUntouched(project);
}

/** A project that was restored from an export has its recorded revision, and nothing to run. */
const isUntouched = ({ status }: Project): boolean =>
  status?.build === undefined && status?.buildFailure === undefined && !status?.deployments?.length;

/**
 * A source without any build gets its first one, unless `/v1` received it for a project that runs something else. A change that
 * did not come through `/v1` is recorded, and built immediately where pushes are published.
 *
 * @param hasBuild whether any build of the project was ever requested
 */
export function decideSource(project: Project, hasBuild: boolean, now: Date): SourceDecision {
  const { metadata, spec } = project;
  const { name, uid = "" } = metadata;
  const recorded = recordedSource(project);
  const source = spec.source ?? spec.github;
  if (metadata.deletionTimestamp !== undefined) {
    return { do: "nothing" };
  }
  if (source === undefined) {
    return { do: recorded === "before" ? "record" : "nothing" };
  }
  if (recorded === "now" && !(isUntouched(project) && !hasBuild)) {
    return { do: "nothing" };
  }
  if (!hasBuild) {
    // Projects that `/v1` has created carry this label.
    const isOfApi = metadata.labels?.[labels.project] === name;
    const left = Date.parse(metadata.creationTimestamp ?? "") + API_CREATION_GRACE_MS - now.getTime();
    if (isOfApi && left > 0) {
      return { do: "wait", afterMs: left };
    }
    // The id includes the uid: a project that is recreated under its old name needs a build of its own.
    const id = isOfApi && recorded === "never" ? firstBuildId(name) : buildIdOf("first build of", name, uid);
    return { do: "record", build: { id, request: { triggeredBy: "creation", branch: source.branch } } };
  }
  if (recorded === "before" && triggerMode(source) === "push") {
    const id = buildIdOf("settings of", name, uid, String(sourceRevision(project)));
    return { do: "record", build: { id, request: { triggeredBy: "settings", branch: source.branch } } };
  }
  return { do: "record" };
}

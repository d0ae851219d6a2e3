/** Reconciles sources that did not come through `/v1`, or whose first build it could not start. */

import type { KubeClient, Reconciler, Store } from "@slipway/controller-runtime";
import {
  type Build,
  fieldManagers,
  nextSourceRevision,
  organizationOfNamespace,
  type Project,
  recordedSource,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { projectResource } from "../resources.ts";
import { createBuild } from "./create-build.ts";
import { decideSource, needsBuildHistory } from "./source-decision.ts";

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

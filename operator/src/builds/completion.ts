/** Deploys a build's image, records its result in the project and the ledger, and cleans up. */

import type { Result } from "@slipway/controller-runtime";
import type { Build, Project } from "@slipway/crds";
import { buildResource } from "../resources.ts";
import { patchProjectStatus } from "./cluster.ts";
import type { Decision } from "./decide.ts";
import type { BuildDependencies } from "./dependencies.ts";
import { buildRow } from "./ledger-row.ts";
import { finalLine } from "./log-lines.ts";
import { organizationOfBuild } from "./names.ts";
import { requestedAt } from "./queue.ts";

type CompleteDecision = Extract<Decision, { do: "end" }>;

const MESSAGES = {
  success: "The new version serves.",
  superseded: "A newer build has taken the place of this one.",
} as const;

/**
 * The project of a build. When it was deleted, or another project has its id by now, as much as the build itself records;
 * undefined without an owner reference.
 */
export function projectOf(build: Build, live: Project | undefined): Project | undefined {
  const { namespace, ownerReferences = [] } = build.metadata;
  const { name } = build.spec.projectRef;
  const owner = ownerReferences.find((one) => one.kind === "Project" && one.name === name);
  if (owner === undefined || owner.uid === live?.metadata.uid) {
    return live;
  }
  return { metadata: { name, namespace, uid: owner.uid } } as Project;
}

export class BuildCompletion {
  readonly #deps: BuildDependencies;

  constructor(deps: BuildDependencies) {
    this.#deps = deps;
  }

  /** Deploys a build's image to its project. @throws KubeError 409 when the project has changed since it was read */
  async deployImage(build: Build, project: Project, signal: AbortSignal): Promise<void> {
    const { image } = build.status ?? {};
    const deployed = { imageBuild: build.metadata.name, imageBuildAt: requestedAt(build), image };
    await patchProjectStatus(project, { build: deployed }, this.#deps, signal);
  }

  /**
   * Records a build's result, the last line of its log first, so that readers of an ended build find the whole log. Idempotent,
   * also after a crash half-way.
   * @param status receives the phase and the failure once the ledger has them: it is also written after an error, and a build that has ended is recorded no more
   */
  async complete(
    build: Build,
    project: Project | undefined,
    status: NonNullable<Build["status"]>,
    { phase, failure }: Omit<CompleteDecision, "do"> & { do?: "end" },
    signal: AbortSignal,
    attempt = 1,
  ): Promise<void> {
    const { clock, follower, metrics, record, storeLog } = this.#deps;
    const finishedAt = status.finishedAt ?? clock.now().toISOString();
    const failed = failure && { errorCode: failure.code, errorMessage: failure.message.slice(0, 1_024) };
    const ended = { ...status, phase, finishedAt, ...failed };
    const owner = projectOf(build, project);
    if (owner) {
      // First, as only this can meet a conflict: rows of the ledger are final.
      if (owner === project) {
        await this.#updateProject(build, project, ended, signal);
      }
      // Lines of the log reference the build's row, which may not exist yet.
      else {
        await record(buildRow(build, owner, { phase: "pending" }));
      }
      const message = failure?.message ?? (phase === "failed" ? "The build has failed." : MESSAGES[phase]);
      const level = phase === "failed" ? "error" : "info";
      const step = (failure && status.step) ?? "publish";
      const key = {
        organizationId: organizationOfBuild(build),
        projectId: owner.metadata.name,
        buildId: build.metadata.name,
      };
      await storeLog(key, [finalLine(attempt, { at: new Date(finishedAt), level, message, step })]);
      await record(buildRow(build, owner, ended, follower.isTruncated(key)));
    }
    Object.assign(status, ended);
    const began = Date.parse(status.startedAt ?? "");
    const seconds = Number.isNaN(began) ? undefined : (Date.parse(finishedAt) - began) / 1_000;
    metrics.ended(phase, seconds, status.errorCode);
  }

  /** Deletes the pods of an ended build, and the Build itself after its retention. */
  async cleanUp(build: Build, signal: AbortSignal): Promise<Result | undefined> {
    const { client, clock, cluster, follower, settings } = this.#deps;
    const pods = cluster.podsOfBuild(build);
    follower.forget({ organizationId: organizationOfBuild(build), buildId: build.metadata.name });
    await cluster.remove(pods, signal);
    const since = clock.now().getTime() - Date.parse(build.status?.finishedAt ?? "");
    const left = settings().keptSeconds * 1_000 - since;
    if (left > 0) {
      return { requeueAfterMs: left };
    }
    const { name, namespace, uid } = build.metadata;
    await client.delete(buildResource, { name, namespace }, { uid, signal });
    return undefined;
  }

  async #updateProject(
    build: Build,
    project: Project,
    { phase, commitSha, errorCode, errorMessage, finishedAt }: NonNullable<Build["status"]>,
    signal: AbortSignal,
  ): Promise<void> {
    const { name } = build.metadata;
    if (phase === "success") {
      const { sourceRevision } = build.spec;
      const published = {
        publishedBuild: name,
        commitSha: commitSha ?? null,
        sourceRevision: sourceRevision ?? null,
      };
      await patchProjectStatus(project, { build: published, buildFailure: null }, this.#deps, signal);
    } else if (phase === "failed") {
      const buildFailure = { buildId: name, code: errorCode, message: errorMessage, at: finishedAt };
      await patchProjectStatus(project, { buildFailure }, this.#deps, signal);
    }
  }
}

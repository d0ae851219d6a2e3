/** What is told of a build's image and of its end: to the project, to the ledger, and then to nobody any more. */

import type { Result } from "@slipway/controller-runtime";
import type { Build, Project } from "@slipway/crds";
import { buildResource } from "../resources.ts";
import { patchProject } from "./cluster.ts";
import type { Decision } from "./decide.ts";
import type { BuildDependencies } from "./dependencies.ts";
import { buildRow } from "./ledger-row.ts";
import { finalLine } from "./log-lines.ts";
import { organizationOfBuild } from "./names.ts";
import { requestedAt } from "./queue.ts";

type End = Extract<Decision, { do: "end" }>;

const WORDS = {
  success: "The new version serves.",
  superseded: "A newer build has taken the place of this one.",
} as const;

/**
 * The project that a build is of. Of one that is gone, or whose id another one has by now, as much as the build itself tells;
 * undefined when it tells nothing.
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

export class BuildEnds {
  readonly #deps: BuildDependencies;

  constructor(deps: BuildDependencies) {
    this.#deps = deps;
  }

  /** Gives a build's image to its project to run. @throws KubeError 409 when the project has changed since it was read */
  async handOver(build: Build, project: Project, signal: AbortSignal): Promise<void> {
    const { image } = build.status ?? {};
    const told = { imageBuild: build.metadata.name, imageBuildAt: requestedAt(build), image };
    await patchProject(project, { build: told }, this.#deps, signal);
  }

  /**
   * Tells of a build's end, what its log ends with first: whoever reads that it has ended finds all of it. Told again after a
   * crash in the middle, it is the same.
   * @param status is given its phase and the failure
   */
  async end(
    build: Build,
    project: Project | undefined,
    status: NonNullable<Build["status"]>,
    { phase, failure }: Omit<End, "do"> & { do?: "end" },
    signal: AbortSignal,
    attempt = 1,
  ): Promise<void> {
    const { clock, follower, metrics, record, storeLog } = this.#deps;
    const finishedAt = status.finishedAt ?? clock.now().toISOString();
    Object.assign(status, { phase, finishedAt });
    if (failure) {
      status.errorCode = failure.code;
      status.errorMessage = failure.message.slice(0, 1_024);
    }
    const told = projectOf(build, project);
    if (told) {
      // First, for only this may find that things have changed by now: what the ledger is told stays.
      if (told === project) {
        await this.#tellProject(build, project, status, signal);
      }
      // The log stands beside the build, which the ledger may never have heard of.
      else {
        await record(buildRow(build, told, { phase: "pending" }));
      }
      const message = failure?.message ?? (phase === "failed" ? "The build has failed." : WORDS[phase]);
      const level = phase === "failed" ? "error" : "info";
      const step = (failure && status.step) ?? "publish";
      const key = {
        organizationId: organizationOfBuild(build),
        projectId: told.metadata.name,
        buildId: build.metadata.name,
      };
      await storeLog(key, [finalLine(attempt, { at: new Date(finishedAt), level, message, step })]);
      await record(buildRow(build, told, status, follower.isTruncated(key)));
    }
    const began = Date.parse(status.startedAt ?? "");
    const seconds = Number.isNaN(began) ? undefined : (Date.parse(finishedAt) - began) / 1_000;
    metrics.ended(phase, seconds, status.errorCode);
  }

  /** Takes away what is left of a build that has ended, and the build itself some time after. */
  async tidy(build: Build, signal: AbortSignal): Promise<Result | undefined> {
    const { client, clock, cluster, follower, settings } = this.#deps;
    const pods = cluster.podsOfBuild(build);
    follower.drop({ organizationId: organizationOfBuild(build), buildId: build.metadata.name });
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

  async #tellProject(
    build: Build,
    project: Project,
    { phase, commitSha, errorCode, errorMessage, finishedAt }: NonNullable<Build["status"]>,
    signal: AbortSignal,
  ): Promise<void> {
    const { name } = build.metadata;
    if (phase === "success") {
      const { sourceRevision } = build.spec;
      const told = {
        publishedBuild: name,
        commitSha: commitSha ?? null,
        sourceRevision: sourceRevision ?? null,
      };
      await patchProject(project, { build: told, buildFailure: null }, this.#deps, signal);
    } else if (phase === "failed") {
      const told = { buildId: name, code: errorCode, message: errorMessage, at: finishedAt };
      await patchProject(project, { buildFailure: told }, this.#deps, signal);
    }
  }
}

/** How many projects of an organization are rolled at a time because variables that they share have changed. */

import {
  equalJson,
  type KubernetesObject,
  type ObjectRef,
  refKey,
  type Store,
} from "@slipway/controller-runtime";
import { annotations, type Deployment, type Project } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { sharesVariables } from "./shared.ts";

/** A Deployment, as far as it shows which version it has. */
export type LiveTemplate = KubernetesObject & {
  spec?: { template?: { metadata?: { annotations?: Record<string, string> } } };
};

/** For how long an admitted project counts without a sign of its rollout, in milliseconds. */
const SIGN_MS = 60_000;

export class RolloutLimiter {
  readonly #projects: Store<Project>;
  readonly #deploymentOf: (project: Project) => LiveTemplate | undefined;
  readonly #clock: Pick<Clock, "monotonic">;
  /** How many there may be in one organization. */
  readonly limit: number;
  /** When each project was admitted whose status does not show it yet, by namespace and key. */
  readonly #admitted = new Map<string, Map<string, number>>();

  constructor({
    projects,
    deploymentOf,
    clock,
    limit,
  }: {
    projects: Store<Project>;
    deploymentOf: (project: Project) => LiveTemplate | undefined;
    clock: Pick<Clock, "monotonic">;
    limit: number;
  }) {
    this.#projects = projects;
    this.#deploymentOf = deploymentOf;
    this.#clock = clock;
    this.limit = limit;
    projects.subscribe(({ type, object }) => {
      if (type === "delete" || isInProgress(object.status?.deployments)) {
        this.#forget(object.metadata);
      }
    });
  }

  /**
   * Whether a project may be rolled to other values now. Then it counts, until its deployment has ended.
   * @param deployments of the project, as this reconcile has observed them
   */
  admit(project: Project, deployments: readonly Deployment[]): boolean {
    if (isInProgress(deployments) || isAhead(deployments, this.#deploymentOf(project))) {
      return true;
    }
    const { namespace = "" } = project.metadata;
    const key = refKey(project.metadata);
    const rolling = new Set([...this.#admittedIn(namespace), ...this.#rollingIn(namespace)]);
    rolling.delete(key);
    if (rolling.size >= this.limit) {
      return false;
    }
    const admitted = this.#admitted.get(namespace) ?? new Map<string, number>();
    this.#admitted.set(namespace, admitted.set(key, this.#clock.monotonic()));
    return true;
  }

  /** The project needs no other values any more. */
  release(project: Project): void {
    this.#forget(project.metadata);
  }

  #rollingIn(namespace: string): string[] {
    return this.#projects
      .list(namespace)
      .filter((project) => sharesVariables(project) && this.#isRolling(project))
      .map(({ metadata }) => refKey(metadata));
  }

  #isRolling(project: Project): boolean {
    const deployments = project.status?.deployments ?? [];
    const isUnderWay = isInProgress(deployments) && isOfValues(deployments);
    return project.spec.paused !== true && (isUnderWay || isAhead(deployments, this.#deploymentOf(project)));
  }

  #admittedIn(namespace: string): string[] {
    const oldest = this.#clock.monotonic() - SIGN_MS;
    return [...(this.#admitted.get(namespace) ?? [])].flatMap(([key, at]) => (at > oldest ? [key] : []));
  }

  #forget(ref: ObjectRef): void {
    const all = this.#admitted.get(ref.namespace ?? "");
    all?.delete(refKey(ref));
    if (all?.size === 0) {
      this.#admitted.delete(ref.namespace ?? "");
    }
  }
}

const isInProgress = ([newest]: readonly Deployment[] = []): boolean => newest?.status === "in_progress";

/** Whether nothing but values has changed with the newest deployment: others are their project's own, and count for nothing. */
function isOfValues([newest, before]: readonly Deployment[]): boolean {
  return newest !== undefined && before !== undefined && equalJson(newest.settings, before.settings);
}

/**
 * Whether a Deployment has a version that the status lacks, since the process that applied it ended before it wrote the status. A paused
 * project has versions that are no deployments, and one that has failed may have returned to a version that is none. Pure.
 */
export function isAhead(deployments: readonly Deployment[], live: LiveTemplate | undefined): boolean {
  const hash = live?.spec?.template?.metadata?.annotations?.[annotations.settingsHash];
  return (
    deployments[0]?.status === "succeeded" &&
    hash !== undefined &&
    deployments.every(({ settingsHash }) => settingsHash !== hash)
  );
}

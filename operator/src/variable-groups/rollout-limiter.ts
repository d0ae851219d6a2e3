/** How many projects of an organization are rolled at a time because variables that they share have changed. */

import {
  isConditionTrue,
  type KubernetesObject,
  type ObjectRef,
  refKey,
  type Store,
} from "@slipway/controller-runtime";
import { annotations, type Deployment, isInstanceType, type Project } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { isQueued, sharesVariables } from "./shared.ts";

/** A Deployment, as far as it shows which version it has. */
export type LiveTemplate = KubernetesObject & {
  spec?: { replicas?: number; template?: { metadata?: { annotations?: Record<string, string> } } };
};

/** For how long an admitted project counts without a sign of its rollout, in milliseconds. */
const SIGN_MS = 60_000;
/** For how long such a project, whose rollout something else prevents, leaves its place to others after that. */
const COOL_DOWN_MS = 240_000;
/** The period in which as many jobs take over other values as there may be rollouts: nothing shows when their next run starts. */
const RUNS_PERIOD_MS = 10_000;

export class RolloutLimiter {
  readonly #projects: Store<Project>;
  readonly #deploymentOf: (project: Project) => LiveTemplate | undefined;
  readonly #clock: Pick<Clock, "monotonic">;
  /** How many there may be in one organization. */
  readonly limit: number;
  /** When each project was admitted first whose status does not show it yet, by namespace and key. */
  readonly #admitted = new Map<string, Map<string, number>>();
  /** When jobs took over other values within the last period, by namespace. */
  readonly #runs = new Map<string, number[]>();

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
      if (type === "delete" || isUnderWay(object.status?.deployments)) {
        this.#forget(object.metadata);
      }
    });
  }

  /**
   * Whether a project may be rolled to other values now. Then it counts, until its deployment has ended. One that is being rolled takes over
   * newer values once, which may correct the ones before: were it more often, values that keep changing would keep its place for ever.
   * @param deployments of the project, as this reconcile has observed them
   */
  admit(project: Project, deployments: readonly Deployment[]): boolean {
    if (isUnderWay(deployments)) {
      const before = deployments[1];
      return !(before?.valuesOnly && before.status === "superseded");
    }
    if (isAhead(deployments, this.#deploymentOf(project))) {
      return true;
    }
    const { namespace = "" } = project.metadata;
    const key = refKey(project.metadata);
    const since = this.#sinceAdmission(project);
    if (since !== undefined && since < SIGN_MS + COOL_DOWN_MS) {
      return since < SIGN_MS;
    }
    const rolling = new Set([...this.#admittedIn(namespace), ...this.#rollingIn(namespace)]);
    rolling.delete(key);
    if (rolling.size >= this.limit || (!isQueued(project) && this.#isAwaited(project))) {
      return false;
    }
    const admitted = this.#admitted.get(namespace) ?? new Map<string, number>();
    this.#admitted.set(namespace, admitted.set(key, this.#clock.monotonic()));
    return true;
  }

  /** The same of a job, whose next run has the values. */
  admitRuns({ metadata: { namespace = "" } }: Project): boolean {
    const now = this.#clock.monotonic();
    const recent = (this.#runs.get(namespace) ?? []).filter((at) => at > now - RUNS_PERIOD_MS);
    const isAdmitted = recent.length < this.limit;
    this.#runs.set(namespace, isAdmitted ? [...recent, now] : recent);
    return isAdmitted;
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
    const live = this.#deploymentOf(project);
    // What is not carried out does not become its status, however long it is ahead.
    const isStarting = isCarriedOut(project) && (live?.spec?.replicas ?? 1) > 0 && isAhead(deployments, live);
    return project.spec.paused !== true && (isUnderWay(deployments) || isStarting);
  }

  /** Whether others wait that could be rolled: a project that begins to wait comes after them. */
  #isAwaited({ metadata: { namespace, name } }: Project): boolean {
    return this.#projects
      .list(namespace)
      .some(
        (other) =>
          other.metadata.name !== name &&
          isQueued(other) &&
          isInstanceType(other.spec.type) &&
          isCarriedOut(other) &&
          !isUnderWay(other.status?.deployments) &&
          this.#sinceAdmission(other) === undefined,
      );
  }

  #sinceAdmission({ metadata }: Project): number | undefined {
    const at = this.#admitted.get(metadata.namespace ?? "")?.get(refKey(metadata));
    return at === undefined ? undefined : this.#clock.monotonic() - at;
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

/** Whether a deployment runs that nothing but values has caused: others are their project's own, and count for nothing. */
const isUnderWay = ([newest]: readonly Deployment[] = []): boolean =>
  newest?.status === "in_progress" && newest.valuesOnly === true;

/** Whether the spec is, as far as the project's status says. */
const isCarriedOut = ({ metadata, spec, status }: Project): boolean =>
  spec.paused !== true &&
  metadata.deletionTimestamp === undefined &&
  status?.observedGeneration === metadata.generation &&
  isConditionTrue(status?.conditions, "Accepted");

/**
 * Whether a Deployment has a version that the status lacks, since the process that applied it ended before it wrote the status. A paused
 * project has versions that are no deployments, and one that has failed may have returned to a version that is none. Pure.
 */
export function isAhead(deployments: readonly Deployment[], live: LiveTemplate | undefined): boolean {
  const hash = live?.spec?.template?.metadata?.annotations?.[annotations.settingsHash];
  const newest = deployments[0]?.status;
  return (
    (newest === "succeeded" || newest === "in_progress") &&
    hash !== undefined &&
    deployments.every(({ settingsHash }) => settingsHash !== hash)
  );
}

/** The progress of the rollout of an application's deployment, and its deadline. */

import type { ConditionSet } from "@slipway/controller-runtime";
import type {
  Deployment,
  Project,
  ProjectConditionCatalog,
  ProjectReason,
  ProjectStatus,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { type DeploymentProgress, remainingMs } from "../projects/deployments/deployments.ts";
import { rolloutStartedAt } from "../projects/deployments/pre-deploy.ts";
import type { Finding } from "../projects/status.ts";
import { settingsHash } from "./desired/deployment.ts";
import type { RolloutGate } from "./pre-deploy-steps.ts";
import type { Running } from "./recreate-steps.ts";
import { explainMiss, type Rollout, type Version } from "./rollout.ts";

/** How much later than Kubernetes the operator abandons a rollout: it observes more of it. */
const GRACE_MS = 10_000;

/** Reasons for instances that are missing without a fault of the application. */
const WAITS: ReadonlySet<ProjectReason> = new Set(["Unschedulable", "QuotaExceeded", "InstanceRefused"]);

export interface RolloutStepsOptions {
  clock: Clock;
  /** Longest time of a rollout without progress, in seconds. */
  rolloutDeadlineSeconds: (project: Project) => number;
  /** Reads the rollout of a version of a project. */
  read: (project: Project, version: Version) => Rollout;
}

/** The assessment of the wanted version. */
export interface RolloutAssessment {
  rollout: Rollout;
  /** Why it did not come to serve in time; absent while it may. */
  failure?: string;
  /** The failure is of its pre-deploy command. */
  isPreDeploy?: boolean;
  /** Where its pre-deploy command is, which comes first. */
  progress?: Finding;
  /** Milliseconds until it is to be assessed again, in any case. */
  againInMs?: number;
}

export class RolloutSteps {
  readonly #options: RolloutStepsOptions;

  constructor(options: RolloutStepsOptions) {
    this.#options = options;
  }

  /** The progress of the newest deployment. */
  progress(project: Project, newest: Deployment): DeploymentProgress {
    const version = { settingsHash: newest.settingsHash, image: newest.image.reference };
    const rollout = this.#options.read(project, version);
    const overdue = (this.#remainingMs(newest, project, rollout) ?? 1) <= 0;
    const running = rollout.complete && rollout.wanted > 0;
    const { port, healthcheck } = newest.settings;
    const healthcheckPath = healthcheck?.enabled ? healthcheck.path : undefined;
    const isLate = rollout.problem?.reason === "StartupTimeout";
    const missed = isLate || this.#isStuck(project, newest, rollout) || overdue;
    return {
      complete: running && (rollout.identified || overdue),
      digest: rollout.imageDigest,
      failure: missed && !running ? explainMiss(rollout, { port, healthcheckPath }) : undefined,
    };
  }

  /** Assesses the wanted version, or the one that runs in its place, after it has been applied. */
  assess(
    project: Project,
    { reported: app, isReturned, gate }: Pick<Running, "reported" | "isReturned" | "gate">,
    status: ProjectStatus,
    conditions: ConditionSet<ProjectConditionCatalog>,
  ): RolloutAssessment {
    const version = { settingsHash: settingsHash(app), image: app.image };
    const rollout = this.#options.read(project, version);
    const newest = status.deployments?.[0];
    if (gate) {
      return assessGate(
        gate,
        app.awaitsPreDeploy ? { ...rollout, complete: true } : rollout,
        newest,
        project,
      );
    }
    if (isReturned && !project.spec.paused) {
      return { rollout, failure: `${newest?.message ?? ""} The version before it runs again.` };
    }
    if (rollout.complete || project.spec.paused) {
      return { rollout };
    }
    if (newest?.status === "failed") {
      return { rollout, failure: rollout.problem?.message ?? newest.message ?? "" };
    }
    if (newest && this.#isStuck(project, newest, rollout)) {
      return { rollout, failure: explainMiss(rollout, app) };
    }
    const left =
      this.#remainingMs(newest, project, rollout) ?? this.#stalledInMs(project, rollout, conditions);
    if (left === undefined) {
      return { rollout };
    }
    return left > 0 || newest?.status === "in_progress"
      ? { rollout, againInMs: Math.max(left, 1_000) }
      : { rollout, failure: explainMiss(rollout, app) };
  }

  /** A failure that Kubernetes reported of the version before does not count; the clocks may differ a little. */
  #isStuck(project: Project, deployment: Deployment, { stuckSince }: Rollout): boolean {
    const least = this.#deadlineMs(project) / 2;
    const since = Date.parse(rolloutStartedAt(deployment));
    return stuckSince !== undefined && Date.parse(stuckSince) - since >= least;
  }

  /**
   * Kubernetes counts from the last progress, so a new instance that comes up and goes down again holds its deadline off
   * for ever; and it does not count at all for what was rolled out while no instance was wanted. One instance after the
   * other, each in its time, is the longest possible rollout.
   */
  #remainingMs(newest: Deployment | undefined, project: Project, { wanted }: Rollout): number | undefined {
    const turns = project.spec.storage?.persistent ? 1 : Math.max(1, wanted);
    return remainingMs(newest, turns * this.#deadlineMs(project) + GRACE_MS, this.#options.clock.now());
  }

  /**
   * Instances that come back or are added are no deployment, and Kubernetes has no deadline for them. An application that
   * fails is reported by Kubernetes.
   */
  #stalledInMs(
    project: Project,
    { problem }: Rollout,
    conditions: ConditionSet<ProjectConditionCatalog>,
  ): number | undefined {
    const progressing = conditions.get("Progressing");
    if (progressing?.status !== "True" || (problem && !WAITS.has(problem.reason))) {
      return undefined;
    }
    const since = Date.parse(progressing.lastTransitionTime);
    return since + this.#deadlineMs(project) + GRACE_MS - this.#options.clock.now().getTime();
  }

  #deadlineMs(project: Project): number {
    return this.#options.rolloutDeadlineSeconds(project) * 1_000;
  }
}

/** Assesses a version whose pre-deploy command has not succeeded. @param rollout of what runs in its place */
function assessGate(
  { progress, againInMs }: RolloutGate,
  rollout: Rollout,
  newest: Deployment | undefined,
  { spec }: Project,
): RolloutAssessment {
  if (spec.paused) {
    return { rollout };
  }
  return newest?.preDeploy?.status === "failed"
    ? { rollout, failure: newest.message ?? "", isPreDeploy: true }
    : { rollout, progress, againInMs };
}

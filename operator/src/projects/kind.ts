/** What the types of projects do each in their own way, within one reconcile that is the same for all. */

import type { Applier, KubeClient, ObjectContext, ObjectRef } from "@slipway/controller-runtime";
import type { Catalog, Project, ProjectConditionCatalog, ProjectPlan } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { TerminalError } from "../reconcile-errors.ts";
import type { Accepted } from "./accept.ts";
import type { DeploymentSteps } from "./deployments/steps.ts";
import type { Finding } from "./status.ts";
import type { ProjectStores } from "./stores.ts";

export type ProjectContext = ObjectContext<Project, ProjectConditionCatalog>;

/** What every type works with. */
export interface KindDependencies {
  client: KubeClient;
  clock: Clock;
  stores: ProjectStores;
  catalog: () => Catalog;
  applier: Applier;
  deployments: DeploymentSteps;
  /** Has a project reconciled soon. */
  wake: (project: ObjectRef) => void;
}

/** How an accepted project is, once its objects are applied. */
export interface Observation {
  /** Milliseconds until it is to be observed again, whatever happens. */
  requeueAfterMs?: number;
  /** What of the spec can never be had, though the rest of it is carried out. */
  refused?: TerminalError;
}

/** What a deletion waits for. */
export interface Remaining extends Finding {
  retryAfterMs: number;
}

/**
 * One type of project. A reconcile calls `observeRollout`, `validate`, `apply` and `observe` in this order, `holdRejectedSpec` in place
 * of the last two when one of the first three throws why the spec is rejected, and `finalize` alone of a project that is deleted.
 * P is its plan; A is what `apply` has derived, for `observe`.
 */
export interface ProjectKind<P extends ProjectPlan = ProjectPlan, A = unknown> {
  /** Whatever the spec is like: records how the newest deployment goes, and stops what has to stop immediately. */
  observeRollout(project: Project, context: ProjectContext): Promise<void>;
  /** The project's plan. @throws TerminalError or WaitingError when the spec is rejected */
  validate(project: Project): P;
  /** Applies the objects of an accepted project. @throws why the spec is rejected */
  apply(project: Project, accepted: Accepted<P>, context: ProjectContext): Promise<A>;
  /** Reads what has become of the applied objects, and writes it into conditions and status. */
  observe(project: Project, applied: A, context: ProjectContext): Promise<Observation>;
  /**
   * Keeps what a rejected spec must not change.
   * @returns milliseconds until it is to be called again; undefined when nothing is left to do
   */
  holdRejectedSpec(project: Project, context: ProjectContext): Promise<number | undefined>;
  /**
   * Deletes the objects of a deleted project, and releases what else it has.
   * @returns what is waited for; undefined when nothing is left
   */
  finalize(project: Project, context: ProjectContext): Promise<Remaining | undefined>;
}

/** By type, those that this operator reconciles. */
export type ProjectKinds = Partial<Record<Project["spec"]["type"], ProjectKind>>;

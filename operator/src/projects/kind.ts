/** The interface of a type of project: the steps in which types differ, within one reconcile that is the same for all. */

import {
  type Applier,
  controllerReference,
  type KubeClient,
  type ObjectContext,
  type ObjectRef,
  resources,
} from "@slipway/controller-runtime";
import {
  type Catalog,
  labels,
  type Project,
  type ProjectConditionCatalog,
  type ProjectPlan,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { TerminalError } from "../reconcile-errors.ts";
import { projectResource } from "../resources.ts";
import type { Retention } from "../undelete/retention.ts";
import { type Accepted, refuse } from "./accept.ts";
import { DELETION_POLL_INTERVAL_MS, runDeletionStep } from "./deletion.ts";
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
  /** Keeps what an undelete needs. */
  retention: Retention;
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
  /** For any spec: records the progress of the newest deployment, and stops what has to stop immediately. */
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

/** The shortest of some delays until the next reconcile, in milliseconds; undefined when there is none. */
export function shortestDelay(...delays: readonly (number | undefined)[]): number | undefined {
  const known = delays.filter((delay) => delay !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined;
}

/** What the API may have created for a project of a type that nothing here reconciles. */
const SECRETS = {
  delete: [resources.secrets],
  pending: [],
  waiting: { reason: "DeletingChildren", message: "The Secrets are being removed." },
} as const;

/** Projects of a type that nothing here reconciles: rejected, and deleted without waiting for anything but their Secrets. */
export function unsupportedKind(client: KubeClient): ProjectKind {
  return {
    observeRollout: async () => {},
    validate: ({ spec }: Project) => {
      throw refuse("TypeNotSupported", `Projects of type ${spec.type} are not supported yet.`);
    },
    apply: async () => undefined,
    observe: async () => ({}),
    holdRejectedSpec: async () => undefined,
    finalize: async (project: Project, { signal }: ProjectContext) => {
      const waiting = await runDeletionStep(SECRETS, project, { client }, signal);
      return waiting && { ...waiting, retryAfterMs: DELETION_POLL_INTERVAL_MS };
    },
  };
}

/** A project as the owner of its children, by which the applier finds them. */
export function ownerOf(project: Project) {
  return {
    label: { key: labels.project, value: project.metadata.name },
    reference: controllerReference(project, projectResource),
    namespace: project.metadata.namespace,
  };
}

/** What the types of projects do each in their own way, within one reconcile that is the same for all. */

import type { Catalog, Project, ProjectConditionCatalog, ProjectPlan } from "@slipway/crds";
import type { Clock, KubeClient } from "@slipway/kube";
import type { TerminalError } from "../reconcile-errors.ts";
import type { Applier, ObjectContext } from "../runtime/index.ts";
import type { Accepted } from "./accept.ts";
import type { DeploymentSteps } from "./deploymentSteps.ts";
import type { ProjectStores } from "./stores.ts";
import type { Finding } from "./summarize.ts";

export type ProjectContext = ObjectContext<Project, ProjectConditionCatalog>;

/** What every type works with. */
export interface KindDependencies {
  client: KubeClient;
  clock: Clock;
  stores: ProjectStores;
  catalog: () => Catalog;
  applier: Applier;
  deployments: DeploymentSteps;
}

/** How an accepted project stands, once its objects are applied. */
export interface Look {
  /** Milliseconds until it is to be looked at again, whatever happens. */
  againInMs?: number;
  /** What of the spec can never be had, though the rest of it is carried out. */
  refused?: TerminalError;
}

/** What a deletion waits for. */
export interface Remaining extends Finding {
  retryAfterMs: number;
}

/** One type of project. Its methods are called in this order, `remove` apart. */
export interface ProjectKind<P extends ProjectPlan = ProjectPlan> {
  /** First of all, whatever the spec is like: how the newest deployment goes, and what must end at once. */
  begin(project: Project, context: ProjectContext): Promise<void>;
  /** The project's plan. @throws TerminalError or WaitingError when it cannot be carried out */
  accept(project: Project): P;
  /**
   * Brings the objects of an accepted project to what its spec asks for.
   * @returns what then looks at them, and writes what it sees into conditions and status
   * @throws why the spec cannot be carried out
   */
  build(project: Project, accepted: Accepted<P>, context: ProjectContext): Promise<() => Promise<Look>>;
  /**
   * What must hold of a spec that cannot be carried out.
   * @returns milliseconds until it is to be called again; undefined when all is as it stays
   */
  hold(project: Project, context: ProjectContext): Promise<number | undefined>;
  /**
   * Takes the objects of a deleted project away, and whatever else is held for it.
   * @returns what is waited for; undefined when nothing is left
   */
  remove(project: Project, context: ProjectContext): Promise<Remaining | undefined>;
}

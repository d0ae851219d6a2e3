/** The steps of a project's reconcile that are about what is billed of it. The rules are in `billable-changes.ts`. */

import { resources } from "@slipway/controller-runtime";
import { annotations, type Project, type ProjectStatus } from "@slipway/crds";
import { DELETION_POLL_INTERVAL_MS } from "../projects/deletion.ts";
import type { ProjectDependencies } from "../projects/dependencies.ts";
import type { Remaining } from "../projects/kind.ts";
import type { LiveDeployment } from "../projects/pause.ts";
import { childOf } from "../projects/stores.ts";
import { stateInForce, stateOfRejected } from "./billable-changes.ts";

export class BillingSteps {
  readonly #deps: Pick<ProjectDependencies, "billableChanges" | "catalog" | "stores">;

  constructor(deps: Pick<ProjectDependencies, "billableChanges" | "catalog" | "stores">) {
    this.#deps = deps;
  }

  /**
   * Reports what a project has whose spec was carried out, after the rest of its status.
   * @returns milliseconds after which to report again; undefined when there is no need to
   */
  report(project: Project, status: ProjectStatus): number | undefined {
    const { billableChanges, catalog } = this.#deps;
    const template = this.#deployment(project)?.spec?.template?.metadata?.annotations;
    const state =
      billableChanges &&
      stateInForce(project, { status, template: template?.[annotations.settingsHash], catalog: catalog() });
    return state && billableChanges?.report(project, status, state);
  }

  /** The same of a project whose spec is rejected. */
  reportRejected(project: Project, status: ProjectStatus): number | undefined {
    const { billableChanges } = this.#deps;
    const replicas = this.#deployment(project)?.spec?.replicas;
    const state = billableChanges && stateOfRejected(project, { status, replicas });
    return state && billableChanges?.report(project, status, state);
  }

  /** Reports that a project is deleted. */
  reportDeletion(project: Project, status: ProjectStatus): void {
    this.#deps.billableChanges?.reportDeletion(project, status);
  }

  /** What the finalizer of a deleted project waits for. */
  remaining(project: Project): Remaining | undefined {
    return this.#deps.billableChanges?.hasEnded(project) === false
      ? {
          reason: "DeletingChildren",
          message: "The end of what is billed is being recorded.",
          retryAfterMs: DELETION_POLL_INTERVAL_MS,
        }
      : undefined;
  }

  #deployment(project: Project): LiveDeployment | undefined {
    return childOf<LiveDeployment>(this.#deps.stores, resources.deployments, project);
  }
}

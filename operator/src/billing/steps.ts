/** The steps of a project's reconcile that are about what is billed of it. The rules are in `billable-changes.ts`. */

import { parseQuantity, resources } from "@slipway/controller-runtime";
import { annotations, type BillableState, type Project, type ProjectStatus } from "@slipway/crds";
import { DELETION_POLL_INTERVAL_MS } from "../projects/deletion.ts";
import type { ProjectDependencies } from "../projects/dependencies.ts";
import type { Remaining } from "../projects/kind.ts";
import type { LiveDeployment } from "../projects/pause.ts";
import { childOf } from "../projects/stores.ts";
import { claimOf } from "../projects/volume.ts";
import { type Live, stateInForce, stateOfRejected } from "./billable-changes.ts";

type Dependencies = Pick<ProjectDependencies, "billableChanges" | "catalog" | "stores">;

/** A state that was reported, and the number that the status had before. */
interface Reported {
  after: number;
  state: BillableState;
}

export class BillingSteps {
  readonly #deps: Dependencies;
  /**
   * What was reported last and changed a status, by uid: where the spec changed meanwhile that status is not written, but instances are as they
   * were applied. It counts only while the status is the one from before.
   */
  readonly #reported = new Map<string, Reported>();

  constructor(deps: Dependencies) {
    this.#deps = deps;
  }

  /**
   * Reports what a project has whose spec was carried out, after the rest of its status.
   * @returns milliseconds after which to report again; undefined when there is no need to
   */
  report(project: Project, status: ProjectStatus): number | undefined {
    return this.#report(project, status, stateInForce);
  }

  /** The same of a project whose spec is rejected. */
  reportRejected(project: Project, status: ProjectStatus): number | undefined {
    return this.#report(project, status, stateOfRejected);
  }

  #report(project: Project, status: ProjectStatus, stateOf: typeof stateInForce): number | undefined {
    const { billableChanges, catalog } = this.#deps;
    if (!billableChanges?.isOn) {
      return undefined;
    }
    const { uid = "" } = project.metadata;
    const after = lastNumber(status);
    const reported = this.#reported.get(uid);
    const before = reported?.after === after ? reported.state : undefined;
    const state = stateOf(project, { status, live: { ...this.#live(project), before }, catalog: catalog() });
    const againInMs = state && billableChanges.report(project, status, state);
    if (state !== undefined && lastNumber(status) !== after) {
      this.#reported.set(uid, { after, state });
    } else if (before === undefined) {
      this.#reported.delete(uid);
    }
    return againInMs;
  }

  /** Reports that a project is deleted. */
  reportDeletion(project: Project, status: ProjectStatus): void {
    this.#reported.delete(project.metadata.uid ?? "");
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

  #live(project: Project): Live {
    const { stores } = this.#deps;
    const deployment = childOf<LiveDeployment>(stores, resources.deployments, project);
    const instances = deployment ?? childOf<LiveDeployment>(stores, resources.statefulSets, project);
    const size = parseQuantity(claimOf(stores, project)?.spec?.resources?.requests?.storage);
    return {
      replicas: instances?.spec?.replicas,
      template: deployment?.spec?.template?.metadata?.annotations?.[annotations.settingsHash],
      volumeGb: size === undefined ? undefined : Number(size / GB),
    };
  }
}

/** In the unit of {@link parseQuantity}. */
const GB = parseQuantity("1Gi") ?? 1n;

const lastNumber = ({ billing }: ProjectStatus): number => billing?.changes.at(-1)?.number ?? 0;

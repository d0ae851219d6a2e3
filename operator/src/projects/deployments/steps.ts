/** The steps of a project's reconcile that are about its deployments. The rules are in `deployments.ts`. */

import type { Deployment, Project, ProjectStatus } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { WaitingError } from "../../reconcile-errors.ts";
import { setDeployments } from "../status-fields.ts";
import {
  advanceDeployment,
  beginDeployment,
  type DeploymentProgress,
  pauseDeployment,
  settingsOf,
} from "./deployments.ts";
import { wantedPreDeploy } from "./pre-deploy.ts";
import type { DeploymentRecords } from "./records.ts";

export class DeploymentSteps {
  readonly #records: DeploymentRecords;
  readonly #clock: Clock;

  constructor(records: DeploymentRecords, clock: Clock) {
    this.#records = records;
    this.#clock = clock;
  }

  /**
   * Records what the ledger has by now and the progress of the newest deployment: first of all, for any spec.
   * @param progressOf observes the newest one
   */
  follow(
    project: Project,
    status: ProjectStatus,
    progressOf: (newest: Deployment) => DeploymentProgress,
  ): void {
    const list = this.#records.mark(project, status.deployments ?? []);
    const [newest] = list;
    if (!newest) {
      return;
    }
    const now = this.#clock.now();
    const advanced = advanceDeployment(list, progressOf(newest), now);
    setDeployments(status, project.spec.paused ? pauseDeployment(advanced, now) : advanced);
  }

  /** A project that is deleted ends the deployment that is under way. */
  end(project: Project, status: ProjectStatus): void {
    const list = this.#records.mark(project, status.deployments ?? []);
    setDeployments(status, pauseDeployment(list, this.#clock.now()));
  }

  /**
   * Makes the wanted version the newest deployment, unless it is already. A paused project's changes become one when it
   * resumes: before, nothing of them can fail or succeed.
   * @param settingsHash hash of all that the wanted version's pods are created from
   * @param valuesOnly other values of variables that projects share are the only reason for another version
   * @returns whether another version was deployed before
   * @throws WaitingError when no deployment before may be forgotten yet
   */
  begin(project: Project, settingsHash: string, status: ProjectStatus, valuesOnly = false): boolean {
    const before = status.deployments ?? [];
    if (project.spec.paused) {
      return before.length > 1;
    }
    const { uid = "", generation } = project.metadata;
    const preDeploy = wantedPreDeploy(project.spec);
    const { sharedVariables } = status;
    const settings = settingsOf(project);
    const wanted = {
      settingsHash,
      settings,
      sharedVariables,
      valuesOnly,
      ...(preDeploy ? { preDeploy } : {}),
    };
    const list = beginDeployment(before, wanted, { uid, generation, now: this.#clock.now() });
    if (!list) {
      throw new WaitingError(
        "LedgerUnavailable",
        "A new deployment waits until the ones before it have been recorded.",
        { requeueAfterMs: 5_000 },
      );
    }
    setDeployments(status, list);
    return list.length > 1;
  }
}

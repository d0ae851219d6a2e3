/**
 * Records deployments in the ledger, at their start and at their end, from the status, which is written before.
 * While the ledger is unavailable it is retried; nothing waits for it, and an unchanged platform does not call it.
 */

import {
  type Controller,
  type Manager,
  type ObjectRef,
  refKey,
  type Store,
  watchObjects,
} from "@slipway/controller-runtime";
import { type Deployment, organizationOfNamespace, type Project } from "@slipway/crds";
import type { Deployment as DeploymentRow } from "@slipway/ledger";
import { withTimeout } from "@slipway/process";
import { RetryableError } from "../../reconcile-errors.ts";
import { stageOf } from "./deployments.ts";

/** Writes one row; writing it again changes nothing. */
export type RecordDeployment = (row: DeploymentRow) => Promise<void>;

/** How long a deletion waits for the ends of its deployments to be recorded. */
const FINAL_RECORD_TIMEOUT_MS = 3_000;

/** What this process has recorded in the ledger and no status contains yet. */
export class DeploymentRecords {
  readonly #write: RecordDeployment;
  /** By project, then by deployment: the status that was recorded. */
  readonly #recorded = new Map<string, Map<string, Deployment["status"]>>();

  constructor(record: RecordDeployment) {
    this.#write = record;
  }

  /** The deployments with what the ledger has of them by now. */
  mark(project: Project, list: readonly Deployment[]): Deployment[] {
    const recorded = this.#recorded.get(keyOf(project));
    return list.map((deployment) =>
      recorded?.get(deployment.id) === deployment.status
        ? { ...deployment, recorded: stageOf(deployment) }
        : deployment,
    );
  }

  /**
   * Records what the ledger does not have yet of a project as it is stored.
   * @returns whether there is something to write into the status
   * @throws whatever `record` throws
   */
  async record(project: Project): Promise<boolean> {
    const key = keyOf(project);
    const deployments = project.status?.deployments ?? [];
    const unrecorded = deployments.filter((deployment) => deployment.recorded !== stageOf(deployment));
    if (unrecorded.length === 0) {
      this.#recorded.delete(key);
      return false;
    }
    const recorded = this.#recorded.get(key) ?? new Map<string, Deployment["status"]>();
    this.#recorded.set(key, recorded);
    // The oldest first: what the ledger has is then never without what was before.
    for (const deployment of unrecorded.toReversed()) {
      if (recorded.get(deployment.id) !== deployment.status) {
        await this.#write(rowOf(project, deployment));
        recorded.set(deployment.id, deployment.status);
      }
    }
    return true;
  }

  /**
   * Records the ends of a project that is about to be deleted, once: nothing waits for longer than `limitMs`. What is not
   * recorded in that time, `reaper.ts` ends.
   */
  async recordFinal(project: Project, limitMs = FINAL_RECORD_TIMEOUT_MS): Promise<void> {
    await withTimeout(this.record(project), limitMs).catch(() => undefined);
  }

  /** Forgets a deleted project. */
  forget(ref: ObjectRef): void {
    for (const key of this.#recorded.keys()) {
      if (key.startsWith(`${refKey(ref)}/`)) {
        this.#recorded.delete(key);
      }
    }
  }
}

function keyOf({ metadata }: Project): string {
  return `${refKey(metadata)}/${metadata.uid ?? ""}`;
}

function rowOf({ metadata }: Project, deployment: Deployment): DeploymentRow {
  const { id, status, startedAt, finishedAt, updatedImage, image, settingsHash, message } = deployment;
  return {
    id,
    organization_id: organizationOfNamespace(metadata.namespace ?? "") ?? "",
    project_id: metadata.name,
    project_uid: metadata.uid ?? null,
    created_at: new Date(startedAt),
    finished_at: finishedAt === undefined ? null : new Date(finishedAt),
    status,
    updated_image: updatedImage,
    image: image.reference,
    digest: image.digest ?? null,
    settings_hash: settingsHash,
    message: message ?? null,
  };
}

/** Adds the controller that records deployments; `projects` is woken to write into the status what was recorded. */
export function addDeploymentRecords(
  manager: Manager,
  records: DeploymentRecords,
  { store, projects }: { store: Store<Project>; projects: Pick<Controller, "enqueue"> },
): Controller {
  return manager.addController({
    name: "deployment-records",
    sources: [watchObjects(store)],
    workers: 2,
    backoff: { baseMs: 500, maxMs: 15_000 },
    reconcile: async (ref) => {
      const project = store.get(ref.namespace, ref.name);
      if (!project) {
        records.forget(ref);
        return undefined;
      }
      const wrote = await records.record(project).catch((error: unknown) => {
        throw new RetryableError("LedgerUnavailable", "The ledger does not take a deployment.", {
          cause: error,
        });
      });
      if (wrote) {
        projects.enqueue(ref);
      }
      return undefined;
    },
  });
}

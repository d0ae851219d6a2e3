/** Loads a backup into a new database, before the database is called ready. */

import { controllerReference, type Store } from "@slipway/controller-runtime";
import { type Backup, type DatabaseStatus, type Project, projectReasons } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { Database } from "../databases/database.ts";
import type { Finding } from "../projects/status.ts";
import { projectResource } from "../resources.ts";
import { scriptsOf } from "./engines/index.ts";
import type { BackupMetrics } from "./metrics.ts";
import { jobNames } from "./names.ts";
import { differenceOf } from "./retention.ts";
import type { BackupSettings } from "./settings.ts";
import type { BackupWork } from "./work.ts";

export interface RestoreDependencies {
  clock: Clock;
  backups: Store<Backup>;
  settings: () => BackupSettings | undefined;
  work: BackupWork;
  metrics: BackupMetrics;
}

/** The progress of a restore. */
export interface RestoreProgress {
  missing: Finding;
  requeueAfterMs: number;
}

/** Events of its Job trigger no reconcile of the project. */
const POLL_INTERVAL_MS = 2_000;
const FAILED_RETRY_MS = 60_000;

export class Restorer {
  readonly #deps: RestoreDependencies;
  /** Uids of projects whose newest attempt has failed, and was counted. */
  readonly #failed = new Set<string>();

  constructor(deps: RestoreDependencies) {
    this.#deps = deps;
  }

  /**
   * Continues a restore. Called once the database accepts connections, until it returns undefined.
   * @param status its `restoredAt` is set once everything is loaded
   */
  async restore(
    project: Project,
    database: Database,
    status: DatabaseStatus,
    signal: AbortSignal,
  ): Promise<RestoreProgress | undefined> {
    const name = project.spec.database?.restoreFrom?.backup;
    if (name === undefined || status.restoredAt !== undefined) {
      return undefined;
    }
    const { backups, clock, metrics, settings, work } = this.#deps;
    const { namespace } = database;
    const backup = backups.get(namespace, name);
    const refused = refusal(backup, database);
    if (refused || !backup) {
      return { missing: refused ?? NOT_FOUND, requeueAfterMs: FAILED_RETRY_MS };
    }
    const scripts = scriptsOf(database.type);
    if (!scripts || !settings()) {
      const message = "This platform restores no backups of this engine.";
      return { missing: { reason: projectReasons.RestoreFailed, message }, requeueAfterMs: FAILED_RETRY_MS };
    }
    const job = jobNames.load(database.id);
    const state = await work.follow(
      {
        work: "load",
        job,
        backup,
        owner: controllerReference(project, projectResource),
        scripts,
        image: database.image,
        projectId: database.id,
        sizeGb: database.storage?.capacityGb ?? 1,
      },
      signal,
    );
    const { uid = "" } = project.metadata;
    if (state.state === "running") {
      this.#failed.delete(uid);
      return { missing: RESTORING, requeueAfterMs: POLL_INTERVAL_MS };
    }
    const problem =
      state.state === "failed" ? state.message : differenceOf(backup.status?.contents, state.result.contents);
    if (problem) {
      if (!this.#failed.has(uid)) {
        this.#failed.add(uid);
        metrics.restored("failed");
      }
      const message = `The backup could not be loaded: ${problem}`;
      return { missing: { reason: projectReasons.RestoreFailed, message }, requeueAfterMs: FAILED_RETRY_MS };
    }
    this.#failed.delete(uid);
    status.restoredAt = clock.now().toISOString();
    metrics.restored("succeeded");
    await work.end({ name: job, namespace }, signal);
    return undefined;
  }
}

const RESTORING: Finding = {
  reason: projectReasons.Restoring,
  message: "The backup is being loaded.",
};
const NOT_FOUND: Finding = {
  reason: projectReasons.BackupNotFound,
  message: "The backup that it is to begin with is not there.",
};

/** Why this database cannot be restored from a backup; undefined when it can. Pure. */
function refusal(backup: Backup | undefined, { type, version, profile }: Database): Finding | undefined {
  if (!backup || backup.metadata.deletionTimestamp) {
    return NOT_FOUND;
  }
  const { status } = backup;
  const failed = (message: string): Finding => ({ reason: projectReasons.RestoreFailed, message });
  if (status?.phase !== "succeeded") {
    return failed("The backup that it is to begin with is not complete.");
  }
  if (status.engine !== type || status.version !== version) {
    return failed(`The backup is of ${status.engine} ${status.version}.`);
  }
  return status.source?.profile === profile ? undefined : failed("The backup is of another profile.");
}

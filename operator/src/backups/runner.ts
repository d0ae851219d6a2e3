/** Runs a backup: waits in the queue of its project, dumps, stores, records the result. */

import {
  controllerReference,
  isConditionTrue,
  type ObjectContext,
  type Result,
  type Store,
} from "@slipway/controller-runtime";
import {
  type Backup,
  type BackupConditionCatalog,
  type BackupReason,
  type BackupStatus,
  backupReasons,
  isDatabaseType,
  type Project,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { type DatabaseImages, imageOf } from "../databases/settings.ts";
import { backupResource } from "../resources.ts";
import { cleanUp } from "./cleanup.ts";
import { scriptsOf } from "./engines/index.ts";
import type { BackupMetrics } from "./metrics.ts";
import { jobNames } from "./names.ts";
import type { BackupSettings } from "./settings.ts";
import type { BackupStore } from "./store.ts";
import type { BackupWork, EngineWork } from "./work.ts";

export type BackupContext = ObjectContext<Backup, BackupConditionCatalog>;

export interface RunnerDependencies {
  clock: Clock;
  projects: Store<Project>;
  backups: Store<Backup>;
  images: () => DatabaseImages;
  settings: () => BackupSettings | undefined;
  store: (backup: Backup) => BackupStore;
  work: BackupWork;
  metrics: BackupMetrics;
}

/** Index of backups by `namespace/project`. */
export const BY_PROJECT = "project";

/** Until the next reconcile of one that waits, in milliseconds; events of Jobs and pods trigger one earlier. */
const POLL_INTERVAL_MS = 5_000;
const RUNNING_POLL_INTERVAL_MS = 30_000;
/** How often the cleanup of a failed backup is checked, in milliseconds. */
const CLEANUP_POLL_INTERVAL_MS = 1_000;
/** How long a backup waits for a database that accepts no connections, in milliseconds. */
const DATABASE_TIMEOUT_MS = 60 * 60_000;
/** For a database without a capacity: a cache. */
const DEFAULT_GB = 10;

export class BackupRunner {
  readonly #deps: RunnerDependencies;

  constructor(deps: RunnerDependencies) {
    this.#deps = deps;
  }

  async run(backup: Backup, context: BackupContext): Promise<Result> {
    const { projects, settings } = this.#deps;
    const { status } = context;
    const project = projects.get(backup.metadata.namespace, backup.spec.projectRef.name);
    if (!settings()) {
      return this.#fail(backup, context, "BackupsDisabled", "This platform makes no backups.");
    }
    if (!project || project.metadata.deletionTimestamp) {
      return this.#abandon(backup, context, "ProjectGone", "The project was deleted.");
    }
    const scripts = scriptsOf(project.spec.type);
    if (!scripts) {
      const message = `There are no backups of projects of type ${project.spec.type}.`;
      return this.#fail(backup, context, "EngineNotSupported", message);
    }
    if (status.startedAt === undefined) {
      const waiting = this.#obstacle(backup, project, context);
      if (waiting) {
        return waiting;
      }
      this.#begin(backup, project, status);
      // Nothing is created before its location is in the status: settings may change.
      return { requeueAfterMs: 1 };
    }
    const image = imageOf(this.#deps.images(), scripts.name, status.version ?? "");
    if (!image) {
      return this.#abandon(backup, context, "ImageMissing", "This platform has no image of the engine.");
    }
    return this.#dump(
      {
        work: "dump",
        job: jobNames.dump(backup.metadata.name),
        backup,
        owner: controllerReference(backup, backupResource),
        scripts,
        image,
        projectId: project.metadata.name,
        sizeGb: status.source?.capacity ?? DEFAULT_GB,
      },
      context,
    );
  }

  /** What prevents its start; undefined when nothing does. */
  #obstacle(backup: Backup, project: Project, context: BackupContext): Result | undefined {
    const { clock } = this.#deps;
    if (project.spec.paused) {
      return this.#fail(backup, context, "Paused", "The project is paused.");
    }
    if (this.#isQueuedBehind(backup)) {
      return this.#wait(context, "AnotherActive", "Another backup of the project is being made.");
    }
    if (isConditionTrue(project.status?.conditions, "DatabaseReady")) {
      return undefined;
    }
    const message = "The database takes no connections.";
    const waited = clock.now().getTime() - Date.parse(backup.spec.requestedAt);
    return waited > DATABASE_TIMEOUT_MS
      ? this.#fail(backup, context, "DatabaseUnavailable", message)
      : this.#wait(context, "DatabaseUnavailable", message);
  }

  /** Whether another one of the project runs, or was requested earlier. */
  #isQueuedBehind(backup: Backup): boolean {
    return this.#deps.backups
      .byIndex(BY_PROJECT, projectKey(backup))
      .filter((other) => other.metadata.uid !== backup.metadata.uid && isActive(other))
      .some((other) => other.status?.startedAt !== undefined || queuePosition(other) < queuePosition(backup));
  }

  #begin(backup: Backup, project: Project, status: BackupStatus): void {
    const { spec } = project;
    const { clock, store } = this.#deps;
    status.phase = "running";
    status.startedAt = clock.now().toISOString();
    status.engine = isDatabaseType(spec.type) ? (spec.type as BackupStatus["engine"]) : undefined;
    status.version = spec.version;
    status.runningVersion = project.status?.database?.runningVersion;
    Object.assign(status, store(backup).place(backup));
    status.message = undefined;
    status.source = {
      name: spec.name,
      plan: spec.plan,
      paymentMode: spec.paymentMode,
      instances: spec.instances,
      capacity: spec.storage?.capacity,
      profile: spec.profile,
      networkAccess: spec.networkAccess,
    };
  }

  async #dump(requested: EngineWork, context: BackupContext): Promise<Result> {
    const { backup } = requested;
    const { conditions, signal, status } = context;
    const { clock, metrics, work } = this.#deps;
    const state = await work.follow(requested, signal);
    if (state.state === "running") {
      status.message = undefined;
      conditions.set({ type: "Ready", status: "False", reason: backupReasons.Running });
      return { requeueAfterMs: RUNNING_POLL_INTERVAL_MS };
    }
    if (state.state === "failed") {
      return this.#abandon(backup, context, state.reason, state.message, true);
    }
    const { result } = state;
    const refused = await work.commit(requested, result, signal);
    if (refused) {
      return this.#abandon(backup, context, "StoreFailed", refused, true);
    }
    const now = clock.now();
    status.phase = "succeeded";
    status.message = undefined;
    status.finishedAt = now.toISOString();
    status.sizeBytes = result.sizeBytes;
    status.sha256 = result.sha256;
    status.contents = result.contents;
    conditions.set({ type: "Ready", status: "True", reason: backupReasons.Stored });
    metrics.made(backup.spec.trigger, "succeeded", secondsSince(status.startedAt, now));
    // Its Job is deleted once this is written: until then it is the only record.
    return { requeueAfterMs: 1 };
  }

  #wait({ conditions, status }: BackupContext, reason: BackupReason, message: string): Result {
    status.phase = "pending";
    status.message = message;
    conditions.set({ type: "Ready", status: "False", reason, message });
    return { requeueAfterMs: POLL_INTERVAL_MS };
  }

  /** Fails once nothing is left of it. @param hasEnded whether its Job has */
  async #abandon(
    backup: Backup,
    context: BackupContext,
    reason: BackupReason,
    message: string,
    hasEnded = false,
  ): Promise<Result> {
    const { conditions, signal, status } = context;
    if (status.startedAt !== undefined && (await cleanUp(backup, hasEnded, this.#deps, signal))) {
      status.message = message;
      conditions.set({ type: "Ready", status: "False", reason, message });
      return { requeueAfterMs: CLEANUP_POLL_INTERVAL_MS };
    }
    return this.#fail(backup, context, reason, message);
  }

  #fail(backup: Backup, context: BackupContext, reason: BackupReason, message: string): Result {
    const { conditions, status } = context;
    const now = this.#deps.clock.now();
    status.phase = "failed";
    status.finishedAt = now.toISOString();
    status.message = message;
    conditions.set({ type: "Ready", status: "False", reason, message });
    this.#deps.metrics.made(backup.spec.trigger, "failed", secondsSince(status.startedAt, now));
    return { requeueAfterMs: 1 };
  }
}

export function isActive({ metadata, status }: Backup): boolean {
  return !metadata.deletionTimestamp && status?.phase !== "succeeded" && status?.phase !== "failed";
}

export function projectKey({ metadata, spec }: Backup): string {
  return `${metadata.namespace}/${spec.projectRef.name}`;
}

const queuePosition = ({ metadata, spec }: Backup) =>
  `${new Date(spec.requestedAt).toISOString()} ${metadata.name}`;

function secondsSince(from: string | undefined, to: Date): number {
  return from === undefined ? 0 : Math.max(0, (to.getTime() - Date.parse(from)) / 1_000);
}

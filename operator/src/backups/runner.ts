/** Makes a backup: waits for its turn, dumps, stores, writes down what it is. */

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
import { clear } from "./cleanup.ts";
import { scriptsOf } from "./engines/index.ts";
import type { BackupMetrics } from "./metrics.ts";
import { jobNames } from "./names.ts";
import type { BackupSettings } from "./settings.ts";
import type { BackupStore } from "./store.ts";
import type { BackupWork, EngineWork } from "./work.ts";

export type BackupContext = ObjectContext<Backup, BackupConditionCatalog>;

export interface MakeDependencies {
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

/** How soon it is looked again at what is waited for, in milliseconds; Jobs and pods wake it up before that. */
const WAIT_MS = 5_000;
const RUNNING_MS = 30_000;
/** How soon it is looked again whether nothing is left of one that has failed. */
const CLEAR_MS = 1_000;
/** For so long a backup waits for a database that takes no connections. */
const PATIENCE_MS = 60 * 60_000;
/** Of a database that says nothing of its size: a cache's. */
const DEFAULT_GB = 10;

export class BackupMaker {
  readonly #deps: MakeDependencies;

  constructor(deps: MakeDependencies) {
    this.#deps = deps;
  }

  async make(backup: Backup, context: BackupContext): Promise<Result> {
    const { projects, settings } = this.#deps;
    const { status } = context;
    const project = projects.get(backup.metadata.namespace, backup.spec.projectRef.name);
    if (!settings()) {
      return this.#fail(backup, context, "BackupsDisabled", "This platform makes no backups.");
    }
    if (!project || project.metadata.deletionTimestamp) {
      return this.#giveUp(backup, context, "ProjectGone", "The project is gone.");
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
      // Nothing is made before it is written where it is to be: settings may change.
      return { requeueAfterMs: 1 };
    }
    const image = imageOf(this.#deps.images(), scripts.name, status.version ?? "");
    if (!image) {
      return this.#giveUp(backup, context, "ImageMissing", "This platform has no image of the engine.");
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

  /** What keeps it from being begun; undefined when it may. */
  #obstacle(backup: Backup, project: Project, context: BackupContext): Result | undefined {
    const { clock } = this.#deps;
    if (project.spec.paused) {
      return this.#fail(backup, context, "Paused", "The project is paused.");
    }
    if (this.#turnIsOthers(backup)) {
      return this.#wait(context, "AnotherActive", "Another backup of the project is being made.");
    }
    if (isConditionTrue(project.status?.conditions, "DatabaseReady")) {
      return undefined;
    }
    const message = "The database takes no connections.";
    const waited = clock.now().getTime() - Date.parse(backup.spec.requestedAt);
    return waited > PATIENCE_MS
      ? this.#fail(backup, context, "DatabaseUnavailable", message)
      : this.#wait(context, "DatabaseUnavailable", message);
  }

  /** The one that runs goes first, then the one that was asked for first. */
  #turnIsOthers(backup: Backup): boolean {
    return this.#deps.backups
      .byIndex(BY_PROJECT, projectKey(backup))
      .filter((other) => other.metadata.uid !== backup.metadata.uid && isActive(other))
      .some((other) => other.status?.startedAt !== undefined || turnOf(other) < turnOf(backup));
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

  async #dump(asked: EngineWork, context: BackupContext): Promise<Result> {
    const { backup } = asked;
    const { conditions, signal, status } = context;
    const { clock, metrics, work } = this.#deps;
    const state = await work.follow(asked, signal);
    if (state.state === "running") {
      status.message = undefined;
      conditions.set({ type: "Ready", status: "False", reason: backupReasons.Running });
      return { requeueAfterMs: RUNNING_MS };
    }
    if (state.state === "failed") {
      return this.#giveUp(backup, context, state.reason, state.message, true);
    }
    const { result } = state;
    const refused = await work.commit(asked, result, signal);
    if (refused) {
      return this.#giveUp(backup, context, "StoreFailed", refused, true);
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
    // Its Job goes once this is written: until then it is what tells.
    return { requeueAfterMs: 1 };
  }

  #wait({ conditions, status }: BackupContext, reason: BackupReason, message: string): Result {
    status.phase = "pending";
    status.message = message;
    conditions.set({ type: "Ready", status: "False", reason, message });
    return { requeueAfterMs: WAIT_MS };
  }

  /** Fails once nothing is left of it. @param hasEnded whether its Job has */
  async #giveUp(
    backup: Backup,
    context: BackupContext,
    reason: BackupReason,
    message: string,
    hasEnded = false,
  ): Promise<Result> {
    const { conditions, signal, status } = context;
    if (status.startedAt !== undefined && (await clear(backup, hasEnded, this.#deps, signal))) {
      status.message = message;
      conditions.set({ type: "Ready", status: "False", reason, message });
      return { requeueAfterMs: CLEAR_MS };
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

const turnOf = ({ metadata, spec }: Backup) => `${new Date(spec.requestedAt).toISOString()} ${metadata.name}`;

function secondsSince(from: string | undefined, to: Date): number {
  return from === undefined ? 0 : Math.max(0, (to.getTime() - Date.parse(from)) / 1_000);
}

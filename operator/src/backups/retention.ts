/** Reconciles a backup that has ended: it is verified when that is requested, and deleted when it has expired. */

import { controllerReference, type KubeClient, type Result, type Store } from "@slipway/controller-runtime";
import {
  type Backup,
  type BackupContents,
  type BackupReason,
  backupReasons,
  type Project,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { type DatabaseImages, imageOf } from "../databases/settings.ts";
import { backupResource } from "../resources.ts";
import { scriptsOf } from "./engines/index.ts";
import type { BackupMetrics } from "./metrics.ts";
import { jobNames } from "./names.ts";
import { type BackupContext, BY_PROJECT, projectKey } from "./runner.ts";
import type { BackupSettings } from "./settings.ts";
import type { BackupWork, WorkStores } from "./work.ts";

export interface RetentionDependencies {
  client: KubeClient;
  clock: Clock;
  projects: Store<Project>;
  backups: Store<Backup>;
  stores: WorkStores;
  images: () => DatabaseImages;
  settings: () => BackupSettings | undefined;
  work: BackupWork;
  metrics: BackupMetrics;
}

const RUNNING_POLL_INTERVAL_MS = 30_000;
/** How often it is checked whether another backup has replaced an expired one. */
const POLL_INTERVAL_MS = 10 * 60_000;
/** Timers hold no longer than this. */
const LONGEST_MS = 24 * 60 * 60_000;
/** Of a database that said nothing of its size. */
const DEFAULT_GB = 10;

export class BackupRetention {
  readonly #deps: RetentionDependencies;

  constructor(deps: RetentionDependencies) {
    this.#deps = deps;
  }

  async reconcile(backup: Backup, context: BackupContext): Promise<Result | undefined> {
    const { stores, work } = this.#deps;
    const { name, namespace = "" } = backup.metadata;
    const dump = jobNames.dump(name);
    reportEnd(backup, context);
    // That of one that has failed stays for a day, with what its containers have written.
    if (backup.status?.phase === "succeeded" && stores.jobs.get(namespace, dump)) {
      await work.end({ name: dump, namespace }, context.signal);
    }
    const requested = backup.spec.verifyRequestedAt;
    if (requested !== undefined && context.status.verifyFinishedFor !== requested) {
      if (backup.status?.phase === "succeeded") {
        return this.#verify(backup, requested, context);
      }
      context.status.verifyFinishedFor = requested;
    } else if (requested !== undefined && stores.jobs.get(namespace, jobNames.verify(name, requested))) {
      await work.end({ name: jobNames.verify(name, requested), namespace }, context.signal);
    }
    return this.#expire(backup, context);
  }

  /** Loads it into a server of its own and compares its content with what was counted when it was made. */
  async #verify(backup: Backup, requested: string, context: BackupContext): Promise<Result> {
    const { conditions, signal, status } = context;
    const { clock, images, work } = this.#deps;
    const scripts = scriptsOf(status.engine ?? "");
    const image = scripts && imageOf(images(), scripts.name, status.version ?? "");
    if (!scripts || !image) {
      return this.#verdict(requested, context, "ImageMissing", "This platform has no image of the engine.");
    }
    const job = jobNames.verify(backup.metadata.name, requested);
    const owner = controllerReference(backup, backupResource);
    const sizeGb = status.source?.capacity ?? DEFAULT_GB;
    const state = await work.follow({ work: "verify", job, backup, owner, scripts, image, sizeGb }, signal);
    if (state.state === "running") {
      const message = "The backup is being loaded into a server of its own.";
      conditions.set({ type: "Verified", status: "Unknown", reason: backupReasons.Verifying, message });
      return { requeueAfterMs: RUNNING_POLL_INTERVAL_MS };
    }
    if (state.state === "failed") {
      return this.#verdict(requested, context, state.reason, state.message);
    }
    const different = differenceOf(status.contents, state.result.contents);
    if (different) {
      return this.#verdict(requested, context, "ContentsDiffer", different);
    }
    status.lastVerifiedAt = clock.now().toISOString();
    return this.#verdict(requested, context, undefined, "");
  }

  #verdict(
    requested: string,
    context: BackupContext,
    reason: BackupReason | undefined,
    message: string,
  ): Result {
    const { conditions, status } = context;
    status.verifyFinishedFor = requested;
    conditions.set(
      reason === undefined
        ? { type: "Verified", status: "True", reason: backupReasons.ContentsEqual }
        : { type: "Verified", status: "False", reason, message },
    );
    if (reason !== undefined) {
      context.event("Warning", reason, message);
    }
    this.#deps.metrics.verified(reason === undefined ? "succeeded" : "failed");
    return { requeueAfterMs: 1 };
  }

  /** The newest ones stay for as long as their project exists: it may have been paused for long. */
  async #expire(backup: Backup, { signal }: BackupContext): Promise<Result | undefined> {
    const { client, clock } = this.#deps;
    if (backup.spec.expiresAt === undefined) {
      return undefined;
    }
    const leftMs = Date.parse(backup.spec.expiresAt) - clock.now().getTime();
    if (leftMs > 0) {
      return { requeueAfterMs: Math.min(leftMs, LONGEST_MS) };
    }
    if (this.#isNeeded(backup)) {
      return { requeueAfterMs: POLL_INTERVAL_MS };
    }
    const { name, namespace, uid } = backup.metadata;
    await client.delete(backupResource, { name, namespace }, { uid, signal });
    return undefined;
  }

  #isNeeded(backup: Backup): boolean {
    const { backups, projects, settings } = this.#deps;
    const project = projects.get(backup.metadata.namespace, backup.spec.projectRef.name);
    if (!project || project.metadata.deletionTimestamp || backup.status?.phase !== "succeeded") {
      return false;
    }
    const newer = backups
      .byIndex(BY_PROJECT, projectKey(backup))
      .filter(({ metadata, status }) => status?.phase === "succeeded" && !metadata.deletionTimestamp)
      .filter(({ spec }) => Date.parse(spec.requestedAt) > Date.parse(backup.spec.requestedAt));
    return newer.length < (settings()?.keepAtLeast ?? 1);
  }
}

/** Keeps the condition that was set when it ended. */
function reportEnd({ status }: Backup, { conditions }: BackupContext): void {
  const said = conditions.get("Ready");
  const reason = said?.reason ?? backupReasons.Stored;
  const isStored = status?.phase === "succeeded";
  conditions.set(
    isStored
      ? { type: "Ready", status: "True", reason: backupReasons.Stored }
      : { type: "Ready", status: "False", reason, message: status?.message },
  );
}

/** What differs, for people; undefined when nothing does. Pure. */
export function differenceOf(
  made: BackupContents | undefined,
  found: BackupContents | undefined,
): string | undefined {
  for (const key of ["tables", "rows", "keys"] as const) {
    if (made?.[key] !== found?.[key]) {
      return `${made?.[key] ?? 0} ${key} were stored, and ${found?.[key] ?? 0} were found.`;
    }
  }
  return made?.hash === found?.hash
    ? undefined
    : "The tables, or the rows of one, are others than were stored.";
}

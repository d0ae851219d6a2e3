/**
 * Makes a Backup for each occurrence of a database's schedule, and requests tests of the newest one. Occurrences that
 * passed while no operator ran are one, made late. The minute is in the Backup's name, so none has two.
 */

import { createHash } from "node:crypto";
import {
  isAlreadyExists,
  type KubeClient,
  type Reconciler,
  type Result,
  type Store,
} from "@slipway/controller-runtime";
import {
  API_VERSION,
  annotations,
  type Backup,
  backupName,
  fieldManagers,
  isDatabaseType,
  labels,
  MANAGED_BY,
  organizationOfNamespace,
  type Project,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { parseSchedule } from "../jobs/runs/schedule.ts";
import { backupResource, projectResource } from "../resources.ts";
import { scriptsOf } from "./engines/index.ts";
import { BY_PROJECT } from "./runner.ts";
import type { BackupSettings } from "./settings.ts";

export interface SchedulerDependencies {
  client: KubeClient;
  clock: Clock;
  projects: Store<Project>;
  backups: Store<Backup>;
  settings: () => BackupSettings | undefined;
}

/** Timers hold no longer than this. */
const LONGEST_MS = 6 * 60 * 60_000;
const DAY_MS = 24 * 60 * 60_000;

/** Its keys are those of Projects. */
export function scheduleReconciler(deps: SchedulerDependencies): Reconciler {
  return async ({ namespace, name }, { signal }): Promise<Result | undefined> => {
    const { clock, projects, settings } = deps;
    const project = projects.get(namespace, name);
    const policy = project && policyOf(project, settings());
    if (!project || !policy || project.metadata.deletionTimestamp) {
      return undefined;
    }
    const now = clock.now();
    const made = await dealWith(
      project,
      policy.schedule,
      annotations.backupScheduledAt,
      now,
      deps,
      signal,
      (at) => create(project, at, policy.retentionDays, deps, signal),
    );
    const tried = await dealWith(
      project,
      policy.verifySchedule,
      annotations.backupVerifyScheduledAt,
      now,
      deps,
      signal,
      (at) => verifyNewest(project, at, deps, signal),
    );
    const next = Math.min(made ?? LONGEST_MS, tried ?? LONGEST_MS, LONGEST_MS);
    return made === undefined && tried === undefined ? undefined : { requeueAfterMs: Math.max(next, 100) };
  };
}

/**
 * The last occurrence that is due and was not dealt with; undefined when there is none. Pure.
 * @param since moment up to which all are dealt with
 */
export function dueOccurrence(cron: string, since: Date, now: Date): Date | undefined {
  const schedule = parseSchedule(cron);
  // Of a schedule that is due every minute, the last ones are enough: they are one anyway.
  const from = new Date(Math.max(since.getTime(), now.getTime() - 9 * 366 * DAY_MS));
  let due: Date | undefined;
  let next = schedule.next(from);
  if (next && now.getTime() - next.getTime() > 2 * DAY_MS) {
    const late = schedule.next(new Date(now.getTime() - DAY_MS));
    due = next;
    next = late && late <= now ? late : undefined;
  }
  while (next && next <= now) {
    due = next;
    next = schedule.next(next);
  }
  return due;
}

/** @returns milliseconds until the next occurrence; undefined when there is no schedule */
async function dealWith(
  project: Project,
  schedule: Schedule | undefined,
  annotation: string,
  now: Date,
  { client, projects }: SchedulerDependencies,
  signal: AbortSignal,
  act: (at: Date) => Promise<void>,
): Promise<number | undefined> {
  if (schedule === undefined) {
    return undefined;
  }
  const { cron, delayMs } = schedule;
  // Those that are due by now are those whose minute was so long ago.
  const moment = new Date(now.getTime() - delayMs);
  const { annotations: own, creationTimestamp, name, namespace, uid } = project.metadata;
  const bootstrapped = project.status?.database?.bootstrappedAt ?? creationTimestamp ?? now.toISOString();
  const dealtWith = new Date(own?.[annotation] ?? bootstrapped);
  // Nothing that lies ahead has been dealt with: it was written with another clock.
  const due = dueOccurrence(cron, dealtWith > now ? new Date(bootstrapped) : dealtWith, moment);
  if (due) {
    if (!project.spec.paused) {
      await act(due);
    }
    const patch = { metadata: { uid, annotations: { [annotation]: due.toISOString() } } };
    const options = { fieldManager: fieldManagers.backup, signal };
    projects.observe(await client.patch<Project>(projectResource, { name, namespace }, patch, options));
  }
  const next = parseSchedule(cron).next(moment);
  return next ? next.getTime() - moment.getTime() : undefined;
}

async function create(
  project: Project,
  at: Date,
  retentionDays: number,
  { client, clock, backups }: SchedulerDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace = "" } = project.metadata;
  const organization = organizationOfNamespace(namespace);
  const backup: Backup = {
    apiVersion: API_VERSION,
    kind: "Backup",
    metadata: {
      name: backupName(name, at),
      namespace,
      labels: {
        [labels.managedBy]: MANAGED_BY,
        ...(organization ? { [labels.organization]: organization } : {}),
        [labels.project]: name,
      },
    },
    spec: {
      projectRef: { name },
      trigger: "schedule",
      requestedAt: at.toISOString(),
      expiresAt: new Date(clock.now().getTime() + retentionDays * DAY_MS).toISOString(),
    },
  };
  try {
    const options = { fieldManager: fieldManagers.backup, signal };
    backups.observe(await client.create<Backup>(backupResource, backup, options));
  } catch (error) {
    if (!isAlreadyExists(error)) {
      throw error;
    }
  }
}

/** A backup that was tried since needs no other test. */
async function verifyNewest(
  project: Project,
  at: Date,
  { client, backups }: SchedulerDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace } = project.metadata;
  const [newest] = backups
    .byIndex(BY_PROJECT, `${namespace}/${name}`)
    .filter(({ metadata, status }) => status?.phase === "succeeded" && !metadata.deletionTimestamp)
    .toSorted((a, b) => Date.parse(b.spec.requestedAt) - Date.parse(a.spec.requestedAt));
  if (!newest || Date.parse(newest.spec.verifyRequestedAt ?? "1970-01-01T00:00:00Z") >= at.getTime()) {
    return;
  }
  const patch = { metadata: { uid: newest.metadata.uid }, spec: { verifyRequestedAt: at.toISOString() } };
  const ref = { name: newest.metadata.name, namespace };
  await client.patch(backupResource, ref, patch, { fieldManager: fieldManagers.backup, signal });
}

// When a database is backed up, and for how long backups are kept: its own word, else the platform's. Pure.

/** Cron of five fields, in UTC, and how long after each occurrence its turn is, in milliseconds. */
export interface Schedule {
  cron: string;
  delayMs: number;
}

export interface Policy {
  /** Undefined where none are made by themselves. */
  schedule?: Schedule;
  verifySchedule?: Schedule;
  retentionDays: number;
}

/** The policy in force; undefined for what cannot be backed up. */
export function policyOf(
  { metadata, spec }: Project,
  settings: BackupSettings | undefined,
): Policy | undefined {
  if (!settings || !isDatabaseType(spec.type) || !scriptsOf(spec.type)) {
    return undefined;
  }
  const { enabled = true, schedule, verifySchedule, retentionDays } = spec.database?.backup ?? {};
  // A cache has no data to keep: backups of one have to be requested.
  const usual = spec.profile === "cache" ? undefined : settings;
  const delayMs = queuePosition(metadata.uid ?? metadata.name, settings.spreadMinutes);
  return {
    schedule: enabled ? scheduleOf(schedule, usual?.schedule, delayMs) : undefined,
    verifySchedule: enabled ? scheduleOf(verifySchedule, usual?.verifySchedule, delayMs) : undefined,
    retentionDays: retentionDays ?? settings.retentionDays,
  };
}

/** A database's own schedule is kept to the minute; the one that all have is spread. */
function scheduleOf(
  own: string | undefined,
  usual: string | undefined,
  delayMs: number,
): Schedule | undefined {
  if (own !== undefined) {
    return { cron: own, delayMs: 0 };
  }
  return usual === undefined ? undefined : { cron: usual, delayMs };
}

/** Where in the minutes a database's turn is: always the same, and different for most. */
function queuePosition(uid: string, spreadMinutes: number): number {
  const drawn = createHash("sha256").update(uid).digest().readUInt32BE(0);
  return Math.floor((drawn / 2 ** 32) * spreadMinutes * 60_000);
}

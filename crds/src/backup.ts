import { z } from "zod";
import { conditions } from "./conditions.ts";
import { objectName, observedGeneration, text, timestamp } from "./fields.ts";
import type { Resource } from "./metadata.ts";
import { networkAccess } from "./project/parts.ts";
import { type TransitionRule, withRules } from "./rule.ts";

/** Condition types of a Backup. */
export const backupConditions = {
  /** Positive, summary: the backup is stored and can be restored. False for good once it has failed. */
  Ready: "Ready",
  /** Positive, only once a restore test was requested: the newest one found all that is in the backup. Unknown while it runs. */
  Verified: "Verified",
} as const;
export type BackupCondition = keyof typeof backupConditions;

/** Reasons of a Backup's conditions. */
export const backupReasons = {
  Stored: "Stored",
  Running: "Running",
  // Waiting
  AnotherActive: "AnotherActive",
  DatabaseUnavailable: "DatabaseUnavailable",
  // Failed for good
  ProjectGone: "ProjectGone",
  Paused: "Paused",
  EngineNotSupported: "EngineNotSupported",
  BackupsDisabled: "BackupsDisabled",
  DumpFailed: "DumpFailed",
  StoreFailed: "StoreFailed",
  // The store, for a moment
  StoreUnavailable: "StoreUnavailable",
  StoreRefused: "StoreRefused",
  DeadlineExceeded: "DeadlineExceeded",
  // Verified
  Verifying: "Verifying",
  ContentsEqual: "ContentsEqual",
  ContentsDiffer: "ContentsDiffer",
  LoadFailed: "LoadFailed",
  DataDamaged: "DataDamaged",
  ImageMissing: "ImageMissing",
  // Deletion
  DeletingData: "DeletingData",
} as const;
export type BackupReason = keyof typeof backupReasons;
/** What conditions of a Backup may say. */
export interface BackupConditionCatalog {
  type: BackupCondition;
  reason: BackupReason;
}

/** States of a backup. Without a status, or pending, it waits for its turn. */
export const backupPhases = ["pending", "running", "succeeded", "failed"] as const;
export type BackupPhase = (typeof backupPhases)[number];

/** Engines whose databases can be backed up. */
export const backupEngines = ["postgresql", "mariadb", "valkey"] as const;
export type BackupEngine = (typeof backupEngines)[number];

const fields = z
  .strictObject({
    projectRef: z.strictObject({ name: objectName("Id of the project.") }).describe("The database."),
    trigger: z.enum(["schedule", "manual"]).describe("What asked for the backup."),
    requestedAt: timestamp("When it was asked for, or the minute for which it was scheduled."),
    expiresAt: timestamp(
      "When the backup is deleted, with its data. Without it, it stays until somebody deletes it.",
    ).optional(),
    verifyRequestedAt: timestamp(
      "Set to a new moment to have the backup loaded into a server of its own, and what is in it counted.",
    ).optional(),
  })
  .describe(
    "One backup of a database: all of it, as it was at one moment. It outlives its project, until it expires.",
  );
export type BackupSpec = z.output<typeof fields>;

const fixed = ["projectRef", "trigger", "requestedAt"] as const;

const transitions: TransitionRule<BackupSpec>[] = fixed.map((field) => ({
  cel: `self.${field} == oldSelf.${field}`,
  check: (self, old) => JSON.stringify(self[field]) === JSON.stringify(old[field]),
  message: `{${field}} cannot be changed`,
  fields: [field],
}));

export const backupSpec = withRules(fields, [], transitions);

const count = (description: string) => z.int().min(0).meta({ description, format: "int64" }).optional();

/** What a dump holds: what a restore test counts again. */
const contents = z
  .strictObject({
    tables: count("Tables."),
    rows: count("Rows of all tables."),
    keys: count("Keys of a key-value service."),
    hash: text(1, 64, "Hash of the names of all tables and the number of their rows.").optional(),
  })
  .describe("What is in it, counted when it was made.");

/** What a restore into a new project takes from the old one. */
const source = z
  .strictObject({
    name: text(1, 64, "Name of the project."),
    plan: text(1, 63, "Its plan."),
    paymentMode: text(1, 32, "How it was paid."),
    instances: z.int().min(1).meta({ description: "Its instances.", format: "int32" }).optional(),
    capacity: z
      .int()
      .min(1)
      .meta({ description: "GB of each instance's volume.", format: "int32" })
      .optional(),
    profile: text(1, 32, "Profile of a key-value service.").optional(),
    networkAccess: networkAccess.optional(),
  })
  .describe("The project as it was then.");

/** Where an object is: what changes in the platform's settings afterwards does not move it. */
const bucket = z
  .strictObject({
    endpoint: text(1, 512, "Address of the store."),
    region: text(1, 64, "Region that requests are signed for."),
    name: text(3, 63, "Name of the bucket."),
    key: text(1, 1024, "Key of the object."),
    forcePathStyle: z.boolean().describe("Whether the bucket is named in the path and not in the host."),
  })
  .describe("The object that it is, where it is kept in a bucket; as it was when it was begun.");
export type BackupBucket = z.output<typeof bucket>;

export const backupStatus = z
  .strictObject({
    observedGeneration: observedGeneration("Generation that this is about."),
    phase: z.enum(backupPhases).describe("State of the backup.").optional(),
    conditions: conditions.optional(),
    engine: z.enum(backupEngines).describe("Engine of the database.").optional(),
    version: text(1, 32, "Its version, as the project asks for it: a restore has the same.").optional(),
    runningVersion: text(1, 64, "Its version as the server reported it.").optional(),
    source: source.optional(),
    startedAt: timestamp("When it began to be made.").optional(),
    finishedAt: timestamp("When it was stored, or had failed.").optional(),
    sizeBytes: count("Bytes that are stored."),
    sha256: text(64, 64, "SHA-256 of what is stored, as hex digits.").optional(),
    location: text(1, 1024, "Where it is stored; no secret is in it.").optional(),
    bucket: bucket.optional(),
    eraseStartedAt: timestamp("When removing what is stored was begun, after its deletion.").optional(),
    contents: contents.optional(),
    lastVerifiedAt: timestamp("When it was last loaded, and all was there.").optional(),
    verifyFinishedFor: timestamp("The verifyRequestedAt that was answered last.").optional(),
    message: text(0, 1024, "Why it failed, or what it waits for, for people.").optional(),
  })
  .describe("What became of the backup.");
export type BackupStatus = z.output<typeof backupStatus>;
export type BackupContents = z.output<typeof contents>;

/** One backup of a database. */
export type Backup = Resource<"Backup", BackupSpec, BackupStatus>;

const MINUTE_MS = 60_000;

/**
 * Name of a backup: the project's id and the minute since the epoch that it is for. Thus an occurrence of a schedule has one
 * backup. A manual one has a suffix of `[a-z0-9]`, at most 4: names of its Jobs have to fit into a label.
 */
export function backupName(projectId: string, at: Date, suffix?: string): string {
  const name = `${projectId}-b${Math.floor(at.getTime() / MINUTE_MS)}`;
  return suffix === undefined ? name : `${name}-${suffix}`;
}

/** The form of a backup's name. */
export const BACKUP_ID = /^[a-z]([a-z0-9-]{0,60}[a-z0-9])?$/;

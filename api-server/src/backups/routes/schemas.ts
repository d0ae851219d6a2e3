import { backupEngines } from "@slipway/crds";
import { z } from "zod";

const moment = (about: string) => z.string().describe(about);

/** A backup, as every answer about it has it. */
export const backupSchema = z.object({
  id: z.string(),
  project_id: z.string(),
  status: z.enum(["pending", "running", "succeeded", "failed", "deleting"]),
  trigger: z.enum(["schedule", "manual"]),
  requested_at: moment("When it was asked for, or the minute that it was scheduled for."),
  expires_at: moment("When it is deleted; null: never.").nullable(),
  engine: z.enum(backupEngines).optional(),
  version: z.string().optional(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  size_bytes: z.number().nullable().describe("Bytes that are stored."),
  sha256: z.string().nullable(),
  contents: z
    .object({ tables: z.number().nullable(), rows: z.number().nullable(), keys: z.number().nullable() })
    .nullable()
    .describe("What is in it, counted when it was made."),
  last_verified_at: moment("When it was last loaded into a server, and all was there.").nullable(),
  verification: z
    .object({
      status: z.enum(["running", "succeeded", "failed"]),
      requested_at: z.string(),
      message: z.string().optional(),
    })
    .nullable()
    .describe("The newest restore test."),
  message: z.string().describe("Why it failed, or what it waits for.").optional(),
});

export const policySchema = z.object({
  enabled: z.boolean(),
  schedule: z.string().nullable().describe("Null: none are made by themselves."),
  verify_schedule: z
    .string()
    .nullable()
    .describe("When the newest backup is tried. Null: when somebody asks."),
  retention_days: z.int(),
  timezone: z.literal("UTC"),
});

import type { OperationExamples } from "./example.ts";
import { EXAMPLE_BACKUP_ID, EXAMPLE_ID } from "./id.ts";

const pending = {
  id: EXAMPLE_BACKUP_ID,
  project_id: EXAMPLE_ID,
  status: "pending",
  trigger: "manual",
  requested_at: "2026-11-21T12:00:00.000Z",
  expires_at: "2026-11-28T12:00:00.000Z",
  started_at: null,
  finished_at: null,
  size_bytes: null,
  sha256: null,
  contents: null,
  last_verified_at: null,
  verification: null,
};
const backup = {
  ...pending,
  status: "succeeded",
  engine: "postgresql",
  version: "17",
  started_at: "2026-11-21T12:00:00.100Z",
  finished_at: "2026-11-21T12:00:04.321Z",
  size_bytes: 73_400_320,
  sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  contents: { tables: 12, rows: 1_048_576, keys: null },
};
const policy = {
  enabled: true,
  schedule: "30 2 * * *",
  verify_schedule: "0 5 * * 0",
  retention_days: 7,
  timezone: "UTC",
};

export const backupExamples = {
  listBackups: {
    responses: {
      200: {
        status: "success",
        data: { backups: [backup], pagination: { page: 1, limit: 15, total: 1, pages: 1 } },
      },
    },
  },
  readBackup: {
    responses: {
      200: {
        status: "success",
        data: {
          backup: {
            ...backup,
            last_verified_at: "2026-11-22T05:00:12.000Z",
            verification: { status: "succeeded", requested_at: "2026-11-22T05:00:00.000Z" },
          },
        },
      },
    },
  },
  createBackup: {
    requests: { backup: { summary: "A backup that is kept for a month", value: { retention_days: 30 } } },
    responses: {
      202: { status: "success", message: "the backup is being made", data: { backup: pending } },
    },
  },
  deleteBackup: {
    responses: { 202: { status: "success", message: "the backup is being deleted" } },
  },
  verifyBackup: {
    responses: {
      202: {
        status: "success",
        message: "the backup is being tried",
        data: {
          backup: {
            ...backup,
            verification: { status: "running", requested_at: "2026-11-22T05:00:00.000Z" },
          },
        },
      },
    },
  },
  restoreBackup: {
    requests: {
      restore: {
        summary: "Into a new project with more instances",
        value: { name: "shop-restored", instances: 3 },
      },
    },
    responses: {
      201: {
        status: "success",
        message: "the backup is being restored",
        data: {
          project_id: EXAMPLE_ID,
          type: "database",
          database: { connection: null, version: "17", replicas: 3 },
        },
      },
    },
  },
  readBackupPolicy: { responses: { 200: { status: "success", data: policy } } },
  updateBackupPolicy: {
    requests: {
      weekly: {
        summary: "Every Sunday, kept for five weeks",
        value: { schedule: "0 3 * * 0", retention_days: 35 },
      },
    },
    responses: { 200: { status: "success", message: "policy updated", data: policy } },
  },
} as const satisfies Record<string, OperationExamples>;

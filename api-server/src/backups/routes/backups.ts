import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineProjectRoute, defineRoute } from "../../http/route.ts";
import { messageOnly, pagination, success } from "../../projects/routes/schemas.ts";
import { deleteBackup, patchBackup, requestBackup } from "../cluster.ts";
import { backupSchema, backupView, isComplete, policyView } from "../view.ts";
import { backupOf, backupsOf, databaseOf, requireBackups } from "./lookup.ts";

const body = z
  .strictObject({
    retention_days: z
      .int()
      .min(1)
      .max(3650)
      .describe("Until it is deleted; the policy's unless given.")
      .optional(),
  })
  .nullish();

export const createBackupRoute = defineProjectRoute({
  operationId: "createBackup",
  method: "POST",
  path: "/v1/project/:id/backups",
  summary: "Back a database up now",
  description:
    "All of it, as it is at one moment, while it serves. 202 means that it will be made; read it to see how it goes.",
  tags: ["Backups"],
  body,
  responses: {
    202: {
      description: "It is made in the background.",
      schema: success({ message: z.string(), data: z.object({ backup: backupSchema }) }),
    },
  },
  refusals: [409],
  handler: async (call, services) => {
    const project = databaseOf(call);
    const days = (): number => {
      const defaults = requireBackups(services);
      return call.body?.retention_days ?? policyView(project.resource, defaults).retention_days;
    };
    const backup = await requestBackup(project, days, services);
    const data = { backup: backupView(backup) };
    return { status: 202, body: { status: "success", message: "the backup is being made", data } };
  },
});

const whole = (most: number) => z.coerce.number().int().min(1).max(most);

export const listBackupsRoute = defineRoute({
  operationId: "listBackups",
  method: "GET",
  path: "/v1/project/:id/backups",
  summary: "List a database's backups",
  description: "The newest first. Those of a deleted project are listed until they expire.",
  tags: ["Backups"],
  query: z.strictObject({ page: whole(1_000_000).default(1), limit: whole(100).default(15) }),
  responses: {
    200: {
      description: "One page.",
      schema: success({ data: z.object({ backups: z.array(backupSchema), pagination }) }),
    },
  },
  handler: async (call, services) => {
    const { page, limit } = call.query;
    const all = await backupsOf(call, services);
    const backups = all.slice((page - 1) * limit, page * limit).map(backupView);
    const pages = Math.ceil(all.length / limit);
    const data = { backups, pagination: { page, limit, total: all.length, pages } };
    return { status: 200, body: { status: "success", data } };
  },
});

export const readBackup = defineRoute({
  operationId: "readBackup",
  method: "GET",
  path: "/v1/project/:id/backups/:backupId",
  summary: "Read one backup",
  tags: ["Backups"],
  responses: {
    200: { description: "The backup.", schema: success({ data: z.object({ backup: backupSchema }) }) },
  },
  handler: async (call, services) => {
    const data = { backup: backupView(await backupOf(call, services)) };
    return { status: 200, body: { status: "success", data } };
  },
});

export const removeBackup = defineRoute({
  operationId: "deleteBackup",
  method: "DELETE",
  path: "/v1/project/:id/backups/:backupId",
  summary: "Delete a backup",
  description: "With what is stored, in the background. It is `deleting` until nothing is left, then 404.",
  tags: ["Backups"],
  responses: { 202: { description: "It is being deleted.", schema: messageOnly } },
  handler: async (call, services) => {
    const backup = await backupOf(call, services);
    if (backup.metadata.deletionTimestamp === undefined) {
      await deleteBackup(services.kube, backup);
    }
    return { status: 202, body: { status: "success", message: "the backup is being deleted" } };
  },
});

export const verifyBackup = defineRoute({
  operationId: "verifyBackup",
  method: "POST",
  path: "/v1/project/:id/backups/:backupId/verify",
  summary: "Try a backup",
  description:
    "It is loaded into a server of its own, and what is there is counted and compared with what was stored. " +
    "`verification` reports its progress, `last_verified_at` when the backup was last found complete.",
  tags: ["Backups"],
  responses: {
    202: {
      description: "It is being tried.",
      schema: success({ message: z.string(), data: z.object({ backup: backupSchema }) }),
    },
  },
  refusals: [409],
  handler: async (call, services) => {
    const backup = await backupOf(call, services);
    if (!isComplete(backup)) {
      throw failures.backupNotComplete(backup.metadata.name);
    }
    requireBackups(services);
    const { verifyRequestedAt } = backup.spec;
    const isRunning =
      verifyRequestedAt !== undefined && backup.status?.verifyFinishedFor !== verifyRequestedAt;
    const requested = isRunning
      ? backup
      : await patchBackup(services.kube, backup, { verifyRequestedAt: services.now().toISOString() });
    const data = { backup: backupView(requested) };
    return { status: 202, body: { status: "success", message: "the backup is being tried", data } };
  },
});

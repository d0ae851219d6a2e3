import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { policyView } from "../policy.ts";
import { requestBackup } from "../request.ts";
import { backupView } from "../view.ts";
import { databaseOf, requireBackups } from "./lookup.ts";
import { backupSchema } from "./schemas.ts";

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

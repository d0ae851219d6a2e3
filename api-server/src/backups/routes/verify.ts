import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { patchBackup } from "../cluster.ts";
import { backupView, isComplete } from "../view.ts";
import { backupOf, requireBackups } from "./lookup.ts";
import { backupSchema } from "./schemas.ts";

export const verifyBackup = defineRoute({
  operationId: "verifyBackup",
  method: "POST",
  path: "/v1/project/:id/backups/:backupId/verify",
  summary: "Try a backup",
  description:
    "It is loaded into a server of its own, and what is there is counted and compared with what was stored. " +
    "`verification` tells how it goes, `last_verified_at` when all was there.",
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
    const asked = isRunning
      ? backup
      : await patchBackup(services.kube, backup, { verifyRequestedAt: services.now().toISOString() });
    const data = { backup: backupView(asked) };
    return { status: 202, body: { status: "success", message: "the backup is being tried", data } };
  },
});

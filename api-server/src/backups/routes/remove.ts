import { defineRoute } from "../../http/route.ts";
import { messageOnly } from "../../projects/routes/schemas.ts";
import { deleteBackup } from "../cluster.ts";
import { backupOf } from "./lookup.ts";

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

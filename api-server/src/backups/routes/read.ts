import { z } from "zod";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { backupView } from "../view.ts";
import { backupOf } from "./lookup.ts";
import { backupSchema } from "./schemas.ts";

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

import { z } from "zod";
import { defineRoute } from "../../http/route.ts";
import { pagination, success } from "../../projects/routes/schemas.ts";
import { backupView } from "../view.ts";
import { backupsOf } from "./lookup.ts";
import { backupSchema } from "./schemas.ts";

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

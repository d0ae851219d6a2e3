import {
  type BackupPolicy,
  backupPolicy,
  normalizeCron,
  type ProjectSpec,
  snakeSchema,
  toCamel,
} from "@slipway/crds";
import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { validate } from "../../http/validate.ts";
import { changeProject } from "../../projects/change.ts";
import { success } from "../../projects/routes/schemas.ts";
import { policySchema, policyView } from "../view.ts";
import { databaseOf, requireBackups } from "./lookup.ts";

const path = "/v1/project/:id/backups/policy";

export const readBackupPolicy = defineProjectRoute({
  operationId: "readBackupPolicy",
  method: "GET",
  path,
  summary: "Read when a database is backed up",
  description: "What is in force: the database's own settings, else the platform's.",
  tags: ["Backups"],
  responses: { 200: { description: "The policy.", schema: success({ data: policySchema }) } },
  handler: (call, services) => {
    const data = policyView(databaseOf(call).resource, requireBackups(services));
    return { status: 200, body: { status: "success", data } };
  },
});

const body = snakeSchema(backupPolicy);

export const updateBackupPolicy = defineProjectRoute({
  operationId: "updateBackupPolicy",
  method: "PUT",
  path,
  summary: "Change when a database is backed up",
  description:
    "The whole policy: what is not sent is the platform's. With enabled false none are made by themselves.",
  tags: ["Backups"],
  documentedBody: body,
  responses: {
    200: { description: "Changed.", schema: success({ message: z.string(), data: policySchema }) },
  },
  refusals: [409],
  handler: async (call, services) => {
    const backup = toCamel(validate(body, withNormalizedSchedules(call.body), "body")) as BackupPolicy;
    const current = databaseOf(call);
    const change = ({ database, ...spec }: ProjectSpec): ProjectSpec => {
      // After what the project itself refuses.
      requireBackups(services);
      return { ...spec, database: { ...database, backup } };
    };
    const fields = { "database.backup": "" };
    const { project } = await changeProject(current, services, change, { fields });
    const data = policyView(project.resource, requireBackups(services));
    return { status: 200, body: { status: "success", message: "policy updated", data } };
  },
});

/** The body with single spaces between the fields of its schedules. */
function withNormalizedSchedules(sent: unknown): unknown {
  if (typeof sent !== "object" || sent === null) {
    return sent;
  }
  return Object.fromEntries(
    Object.entries(sent).map(([key, value]) => [
      key,
      /schedule$/.test(key) && typeof value === "string" ? normalizeCron(value) : value,
    ]),
  );
}

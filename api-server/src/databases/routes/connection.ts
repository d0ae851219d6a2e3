import { databaseTypes } from "@slipway/crds";
import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import { connectionOf, databaseView, managedServiceView, previousPasswordView } from "../connection.ts";
import { IN_FORCE_LIMIT_MS, renewCredentials } from "../renewal.ts";
import { readConnection, renewalBody, renewedConnection } from "./schemas.ts";

export const databaseConnection = defineProjectRoute({
  operationId: "readDatabaseConnection",
  method: "GET",
  path: "/v1/project/:id/database/connection",
  summary: "Read how clients connect to a database",
  description:
    "Without the password, which creation and renewal alone show. `inside` is how the organization's own projects connect.",
  tags: ["Databases"],
  responses: {
    200: { description: "The connection.", schema: success({ data: readConnection }) },
  },
  handler: ({ project }) => {
    requireType(project, databaseTypes);
    const { spec, status } = project.resource;
    const connection = connectionOf(project.resource);
    const { host, port, replicasHost } = status?.database?.inside ?? {};
    const inside = { host, port, ...(replicasHost === undefined ? {} : { replicas_host: replicasHost }) };
    const data = {
      ...databaseView(project, connection),
      ...(host === undefined ? {} : { inside }),
      ...previousPasswordView(project.resource),
      ...(spec.type === "valkey" ? { managed_service: managedServiceView(project, connection) } : {}),
    };
    return { status: 200, body: { status: "success", data } };
  },
});

export const renewDatabaseCredentials = defineProjectRoute({
  operationId: "renewDatabaseCredentials",
  method: "POST",
  path: "/v1/project/:id/database/credentials/renew",
  summary: "Give a database's user a new password",
  description:
    "The answer shows it once, when it is in force. From then on the one before it does not log in, unless instances that have it by reference " +
    "still run: then `previous_password_expires_at` is there, and it ends with the last of them. Open sessions stay. " +
    `Within ${IN_FORCE_LIMIT_MS / 1000} seconds, or else 503 DATABASE_CREDENTIALS_PENDING: then the next call waits for the same ` +
    "password, and shows it.",
  tags: ["Databases"],
  body: renewalBody,
  responses: {
    200: {
      description: "The connection with the new password.",
      schema: success({ message: z.string(), data: renewedConnection }),
    },
  },
  refusals: [409],
  handler: async ({ project: database, body }, services) => {
    requireType(database, databaseTypes);
    const options = { revokePrevious: body?.revoke_previous === true };
    const { project, connection } = await renewCredentials(database, services, options);
    const isValkey = project.resource.spec.type === "valkey";
    const data = {
      ...databaseView(project, connection),
      ...previousPasswordView(project.resource),
      ...(isValkey ? { managed_service: managedServiceView(project, connection) } : {}),
    };
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      body: { status: "success", message: "credentials renewed", data },
    };
  },
});

import { databaseTypes } from "@slipway/crds";
import { defineProjectRoute } from "../../http/route.ts";
import { requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import { connectionOf, databaseView, managedServiceView } from "../connection.ts";
import { readConnection } from "./schemas.ts";

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
      ...(spec.type === "valkey" ? { managed_service: managedServiceView(project, connection) } : {}),
    };
    return { status: 200, body: { status: "success", data } };
  },
});

import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { capabilitiesOf } from "../capabilities.ts";

const capabilities = z.object({
  access: z.enum(["snapshot", "none"]).describe("none: a snapshot must not be asked for."),
  groups: z.array(z.string()),
  refresh_seconds: z.int(),
  history: z.null().describe("Only the newest snapshot is kept, no series."),
});

export const metricsCapabilities = defineProjectRoute({
  operationId: "readMetricsCapabilities",
  method: "GET",
  path: "/v1/project/:id/metrics/capabilities",
  summary: "Read which snapshots of metrics a project's plan gives",
  description:
    "Jobs and clickhouse have none. Applications have no snapshot, but `GET metrics` on plans with metrics.",
  tags: ["Metrics"],
  responses: { 200: { description: "What there is.", schema: success({ data: capabilities }) } },
  handler: ({ project }, { catalog }) => {
    const data = capabilitiesOf(project.resource, catalog.current);
    return { status: 200, body: { status: "success", data } };
  },
});

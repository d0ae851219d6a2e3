import { z } from "zod";
import { defineRoute } from "../../../http/route.ts";
import type { ApiProject } from "../../../projects/api-project.ts";
import { MAX_BYTES, MAX_LINES, readLog } from "../../../projects/logs/read.ts";
import { success } from "./schemas.ts";

export const logs = defineRoute({
  operationId: "readProjectLogs",
  method: "GET",
  path: "/v1/project/:id/logs",
  summary: "Read what the application wrote last",
  description:
    `The newest ${MAX_LINES} lines of all instances, merged by time, in at most ${MAX_BYTES / 1024} KiB. Of a container ` +
    "that crashed and runs again, the lines of its last run come too. A paused project has none.",
  tags: ["Projects"],
  query: z.strictObject({
    instance: z.string().min(1).max(253).describe("Name of one instance: only its lines.").optional(),
  }),
  responses: {
    200: {
      description: "Lines of the application's log, oldest first.",
      schema: success({
        data: z.array(z.string()).max(MAX_LINES),
        instances: z.array(z.string()).describe("Names of the instances that were read."),
        unavailable_instances: z
          .array(z.string())
          .describe("Instances whose node does not answer: their lines are missing.")
          .optional(),
      }),
    },
  },
  refusals: [400],
  // Each reads megabytes from the nodes.
  atOnce: 8,
  handler: async ({ project, query }, { kube, logger }) => {
    const { lines, instances, unavailable } = await readLog(
      kube,
      logger,
      project as ApiProject,
      query.instance,
    );
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      body: {
        status: "success",
        data: lines,
        instances,
        ...(unavailable.length > 0 ? { unavailable_instances: unavailable } : {}),
      },
    };
  },
});

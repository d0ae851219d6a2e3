import { z } from "zod";
import { eventAnswer } from "../../http/event-streams.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { lastRunLines } from "../../jobs/log.ts";
import { success } from "../../projects/routes/schemas.ts";
import { MAX_BYTES, MAX_LINES, readLog } from "../read.ts";

export const logs = defineProjectRoute({
  operationId: "readProjectLogs",
  method: "GET",
  path: "/v1/project/:id/logs",
  summary: "Read what the application wrote last",
  description:
    `The newest ${MAX_LINES} lines of all instances, merged by time, in at most ${MAX_BYTES / 1024} KiB. Of a container ` +
    "that crashed and runs again, the lines of its last run come too. A paused project has none. Of a job they are those of the run that is active, " +
    "else of its last run in this billing cycle. With `follow=true` the answer is `text/event-stream`: those lines, then new ones as they are " +
    "written, also of instances that come later. Events: `instances` (names, and those whose node is silent), `log` (`instance`, " +
    "`timestamp`, `message`; of a job those of runs that are active), and `end` once the project is deleted. A stream without `end` is to " +
    "be gone on with: `Last-Event-ID` leaves out what was sent.",
  tags: ["Projects"],
  query: z.strictObject({
    instance: z.string().min(1).max(253).describe("Name of one instance: only its lines.").optional(),
    follow: z.enum(["true", "false"]).describe("Lines as they are written, as events.").optional(),
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
  maxConcurrent: 8,
  handler: async ({ project, query, request, recheck }, services) => {
    if (query.follow === "true" && request.method === "GET") {
      const last = /^[0-9]{1,19}$/.exec(String(request.headers["last-event-id"] ?? ""))?.[0];
      const after = last === undefined ? undefined : BigInt(last);
      return eventAnswer(await services.logs.open(project, query.instance, after, recheck));
    }
    const { kube, logger } = services;
    const { lines, instances, unavailable } = await readLog(kube, logger, project, query.instance);
    const isBetweenRuns = project.resource.spec.type === "job" && instances.length === 0;
    const shown = isBetweenRuns ? await lastRunLines(project, services) : lines;
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      body: {
        status: "success",
        data: shown,
        instances,
        ...(unavailable.length > 0 ? { unavailable_instances: unavailable } : {}),
      },
    };
  },
});

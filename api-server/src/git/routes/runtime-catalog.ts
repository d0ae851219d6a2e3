import { runtimeIds } from "@slipway/builder";
import { z } from "zod";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";

export const runtimeCatalog = defineRoute({
  operationId: "listGitRuntimes",
  method: "GET",
  path: "/v1/git/runtime-catalog",
  summary: "List runtimes",
  description: "What applications can be built for from a Git repository, in which versions.",
  tags: ["Git"],
  responses: {
    200: {
      description: "Every runtime, those that this platform has nothing to build with too.",
      schema: success({
        data: z.object({
          runtimes: z.array(
            z.object({
              id: z.enum(runtimeIds),
              name: z.string(),
              available: z.boolean(),
              versions: z.array(z.string()),
              default_version: z.string().nullable(),
            }),
          ),
        }),
      }),
    },
  },
  handler: (_call, services) => ({
    status: 200,
    body: { status: "success", data: { runtimes: services.runtimes() } },
  }),
});

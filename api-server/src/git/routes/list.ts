import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { listConnections } from "../cluster.ts";
import { connectionView } from "../view.ts";
import { connectionSchema } from "./schemas.ts";

export const listGitConnections = defineRoute({
  operationId: "listGitConnections",
  method: "GET",
  path: "/v1/git/connections",
  summary: "List Git connections",
  description:
    "All of the organization, the oldest first; revoked ones as long as hooks of theirs are left at the server.",
  tags: ["Git"],
  responses: {
    200: {
      description: "All of them.",
      schema: success({ data: z.object({ connections: z.array(connectionSchema) }) }),
    },
  },
  handler: async ({ principal }, services) => {
    const found = await listConnections(services.kube, (principal as Principal).organizationId);
    return { status: 200, body: { status: "success", data: { connections: found.map(connectionView) } } };
  },
});

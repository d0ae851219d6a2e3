import { z } from "zod";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { revoke } from "../revoke.ts";
import { connectionView } from "../view.ts";
import { connectionOf, MAX_CONCURRENT } from "./lookup.ts";
import { connectionSchema } from "./schemas.ts";

export const revokeGitConnection = defineRoute({
  operationId: "revokeGitConnection",
  method: "DELETE",
  path: "/v1/git/connections/:connectionId",
  summary: "Revoke a Git connection",
  description:
    "From a success on, nothing uses the credential any more. `cleanup_pending` tells that hooks are left at the server, which did " +
    "not answer: the connection is listed as revoked until calling this again has removed them. While a build uses the " +
    "connection it is refused, and the connection stays active.",
  tags: ["Git"],
  responses: {
    200: {
      description: "Revoked.",
      schema: success({
        message: z.string(),
        data: z.object({ connection: connectionSchema, cleanup_pending: z.boolean() }),
      }),
    },
  },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const { connection, cleanupPending } = await revoke(await connectionOf(call, services), services);
    const data = { connection: connectionView(connection), cleanup_pending: cleanupPending };
    return { status: 200, body: { status: "success", message: "the connection is revoked", data } };
  },
});

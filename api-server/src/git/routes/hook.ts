import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";
import { connectionIfAny } from "../cluster.ts";
import { readCredential } from "../credentials.ts";
import { acceptDelivery, DELIVERY_LIMIT, type DeliveryOutcome } from "../delivery.ts";
import { MAX_CONCURRENT } from "./connections.ts";

const MESSAGES = {
  taken: "the delivery is dealt with in the background",
  ignored: "the delivery is of a kind that starts nothing",
  duplicate: "the delivery was taken before",
} as const;

export const receiveGitHook = defineRoute({
  operationId: "receiveGitHook",
  method: "POST",
  path: "/v1/git/hooks/:connectionId",
  summary: "Take a delivery of a Git server's hook",
  description:
    "Of Forgejo, Gitea and GitHub, as application/json. The signature over the body is checked first: `X-Forgejo-Signature`, " +
    "`X-Gitea-Signature`, `X-Hub-Signature-256`. A delivery that comes again starts nothing again. " +
    "202 means that it is kept, and dealt with in the background: while the Git server does not answer it is tried again.",
  tags: ["Git"],
  rawBody: true,
  bodyLimit: DELIVERY_LIMIT,
  documentedBody: z.looseObject({}).describe("As the Git server sends it."),
  responses: {
    202: {
      description: "Taken.",
      schema: success({
        message: z.string(),
        data: z.object({ outcome: z.enum(["taken", "ignored", "duplicate"]) }),
      }),
    },
  },
  maxConcurrent: MAX_CONCURRENT,
  handler: async ({ params, body, request }, services) => {
    const { connectionId } = params as { connectionId: string };
    const { kube, builds } = services;
    // The guard refuses an unknown connection.
    const organizationId = request.hookOrganizationId as string;
    const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
    const outcome = await acceptDelivery({ organizationId, connectionId }, request.headers, bytes, {
      findConnection: (organization, id) => connectionIfAny(kube, organization, id),
      hookSecret: async (connection) => (await readCredential(kube, connection)).hookSecret,
      queue: (delivery, event) => builds.store.deliveries.queue(delivery, event),
    });
    const kind = messageOf(outcome);
    return { status: 202, body: { status: "success", message: MESSAGES[kind], data: { outcome: kind } } };
  },
});

/** @throws Failure 400, 401 */
function messageOf(outcome: DeliveryOutcome): keyof typeof MESSAGES {
  if (outcome.kind === "unsigned") {
    throw failures.gitDeliveryUnsigned();
  }
  if (outcome.kind === "invalid") {
    throw failures.malformedBody(outcome.reason);
  }
  return outcome.kind;
}

import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { beginCallAudit } from "../../http/audit.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { isWebSocketRequest } from "../../http/upgrades.ts";
import { APP } from "../../logs/instance-log.ts";
import { auditedEnd, auditedStart } from "../audited.ts";
import { MAX_SERVER_MESSAGE } from "../frames.ts";
import { findRunningInstance, INSTANCE, startFailure } from "../instance.ts";
import type { SessionEnd } from "../session.ts";

/** Types of projects whose instances run what their organization has built. */
const TYPES = ["http", "worker"];
/** Words of a command, and characters of all of them: a URL has 16 KiB with its headers. */
const MAX_WORDS = 64;
const MAX_CHARACTERS = 8_192;
/** Milliseconds until the instance's node must have started the command. */
const START_MS = 10_000;

const word = z.string().max(MAX_CHARACTERS);
const flag = z.enum(["true", "false"]).default("false");
export const exec = defineProjectRoute({
  operationId: "execInstance",
  method: "GET",
  path: "/v1/project/:id/instances/:instance/exec",
  upgrades: true,
  summary: "Run a command in an instance",
  description:
    "A WebSocket with the subprotocol `v5.channel.k8s.io`, as Kubernetes has it: each binary message begins with the byte of its channel (0 input, " +
    '1 output, 2 errors, 3 the status of the command\'s end as JSON, 4 the terminal\'s size `{"Width":80,"Height":24}`, 255 the end of channel 0). ' +
    "The command is that of the query, `command` repeated for each word, in the application's container; no shell is started unless it is the command. " +
    "A browser, which sets no headers, sends its credential as a further subprotocol, `base64url.bearer.authorization.k8s.io.<credential>`, and the " +
    "organization of a user token as `organization.slipway.dev.<id>`. The close code and its reason say why the session ended.",
  tags: ["Projects"],
  params: z.object({ id: z.string(), instance: z.string().regex(INSTANCE) }),
  query: z.strictObject({
    command: z
      .union([word, z.array(word).max(MAX_WORDS)])
      .refine((words) => [words].flat()[0] !== undefined && [words].flat()[0] !== "", "must name a program")
      .refine(
        (words) => [words].flat().join("").length <= MAX_CHARACTERS,
        `must have at most ${MAX_CHARACTERS} characters`,
      )
      .describe("Program and arguments, one each."),
    stdin: flag.describe("Whether the command has an input."),
    tty: flag.describe("Whether it has a terminal: then channel 1 has both outputs."),
  }),
  responses: { 101: { description: "The connection is a WebSocket, and the command runs." } },
  refusals: [400, 402, 409, 426, 431],
  beginsAudit: true,
  handler: async ({ project, params, query, principal, request, recheck }, services) => {
    const { kube, exec: sessions, audit, logger } = services;
    const { type, paused } = project.resource.spec;
    if (!TYPES.includes(type)) {
      throw failures.projectTypeMismatch(type, TYPES);
    }
    if (!isWebSocketRequest(request)) {
      throw failures.webSocketRequired();
    }
    if (paused === true) {
      throw failures.projectPaused();
    }
    const { instance } = params;
    const command = [query.command].flat();
    const streams = { stdin: query.stdin === "true", tty: query.tty === "true" };
    const place = await sessions.reserve({ project, recheck });
    try {
      const pod = await findRunningInstance(kube, project, instance);
      await beginCallAudit(request, services, {
        operation: auditedStart("execInstance", { instance, command, ...streams }),
      });
      const upstream = await kube
        .podExecStream(pod, {
          container: APP,
          command,
          ...streams,
          maxPayload: MAX_SERVER_MESSAGE,
          timeoutMs: START_MS,
        })
        .catch((error: unknown) => {
          throw startFailure(error, instance);
        });
      const about = {
        reqId: request.id,
        actor: principal?.actor,
        organizationId: project.organizationId,
        projectId: project.id,
        instance,
      };
      logger.info(about, "exec session begins");
      const { auditId } = request;
      const finish = (end: SessionEnd) => {
        if (auditId) {
          audit.finish(auditId, { status: 101, code: auditedEnd(end), projectId: null });
        }
        logger.info({ ...about, code: end.code }, "exec session ended");
      };
      return {
        status: 101,
        accept: (client) => place.begin({ client, upstream, streams }, finish),
        abandon: () => place.abandon(upstream, finish),
      };
    } catch (error) {
      place.release();
      throw error;
    }
  },
});

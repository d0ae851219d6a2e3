import { type CreateProjectRequest, createProjectBodies, createProjectBody } from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../../../auth/principal.ts";
import { beginCallAudit } from "../../../http/audit.ts";
import { requireCreation } from "../../../http/guard.ts";
import { defineRoute } from "../../../http/route.ts";
import { newProjectId } from "../../../ids.ts";
import { policyOf } from "../../../policy/table.ts";
import type { ApiProject } from "../../../projects/api-project.ts";
import { checkCreation, isIdempotencyKey } from "../../../projects/creation/body.ts";
import { type Attempt, admitCreation, createProject } from "../../../projects/creation/create.ts";
import { onceByKey } from "../../../projects/creation/idempotency.ts";
import { withTemplate } from "../../../projects/creation/template.ts";
import { ENVIRONMENT_BODY_LIMIT, success } from "./schemas.ts";

const { name, description, plan, payment_mode } = createProjectBodies.http.shape as Record<string, z.ZodType>;

/** A creation from a template: what is sent wins over the template's, in `config` key by key. */
const fromTemplate = z
  .strictObject({
    template_id: z.string(),
    template_revision: z.int(),
    name: name as z.ZodType,
    description: (description as z.ZodType).optional(),
    plan: (plan as z.ZodType).optional(),
    payment_mode: (payment_mode as z.ZodType).optional(),
    config: z.looseObject({}).describe("Members that win over the template's config.").optional(),
  })
  .describe("From a template of GET /v1/project/templates; what is sent wins over the template's.");

export const create = defineRoute({
  operationId: "createProject",
  method: "POST",
  path: "/v1/project",
  summary: "Create a project",
  description:
    "The permission depends on config.type_project. With an Idempotency-Key, sending the same body again answers " +
    "the same project. With template_id and template_revision, what is not sent comes from the template.",
  tags: ["Projects"],
  documentedBody: z.union([...createProjectBody.options, fromTemplate]),
  prepareBody: (body, { catalog }) => withTemplate(body, catalog.current),
  headers: z.object({
    "idempotency-key": z
      .string()
      .regex(/^[A-Za-z0-9._-]{16,200}$/)
      .describe("Required for Valkey; one key stands for one body.")
      .optional(),
  }),
  responses: {
    201: {
      description: "Created; it starts in the background.",
      schema: success({
        message: z.string(),
        data: z.object({
          project_id: z.string(),
          domain: z.string().describe("Default domain; empty for private projects."),
          type: z.literal("application"),
        }),
      }),
    },
  },
  refusals: [402, 409],
  bodyLimit: ENVIRONMENT_BODY_LIMIT,
  beginsAudit: true,
  handler: async ({ principal, body, request }, services) => {
    const { organizationId } = principal as Principal;
    const key = request.headers["idempotency-key"];
    const admit = async () => {
      const wanted = checkCreation(body, key, services);
      await admitCreation(wanted, organizationId, services);
      return wanted;
    };
    const create = async (wanted: CreateProjectRequest, projectId: string, leftover = false) => {
      await beginCallAudit(request, services, projectId);
      return createProject(wanted, { organizationId, projectId, leftover }, services);
    };
    const project = isIdempotencyKey(key)
      ? await onceByKey({ organizationId, key, body: request.body }, services, { admit, create })
      : await orFailure(await create(await admit(), newProjectId()));
    requireTypePermission(principal as Principal, project.resource.spec.type);
    request.writtenProjectId = project.id;
    return {
      status: 201,
      body: {
        status: "success",
        message: "project created",
        data: { project_id: project.id, domain: project.domain ?? "", type: "application" },
      },
    };
  },
});

/** @throws Failure once what is left of a refused creation is taken back */
async function orFailure(attempt: Attempt): Promise<ApiProject> {
  if ("project" in attempt) return attempt.project;
  // Best effort: what stays behind names its project in a label, and its owner where it has one.
  await attempt.undo?.().catch(() => undefined);
  throw attempt.failure;
}

/** A repeat is answered without its body, so its type is known only now. */
function requireTypePermission(principal: Principal, type: string): void {
  const access = policyOf("createProject")?.access;
  if (access?.kind === "create") requireCreation(principal, access, type);
}

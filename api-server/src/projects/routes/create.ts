import {
  type CreateProjectRequest,
  createProjectBodies,
  createProjectBody,
  firstBuildId,
  isDatabaseType,
  projectPhases,
} from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { refuseForeignImage } from "../../builds/platform.ts";
import {
  awaitAddress,
  connectionOf,
  databaseView,
  managedServiceView,
  secretConnectionOf,
} from "../../databases/connection.ts";
import { createdConnection, managedServiceCreated } from "../../databases/routes/schemas.ts";
import { beginCallAudit } from "../../http/audit.ts";
import { requireCreation } from "../../http/guard.ts";
import { defineRoute } from "../../http/route.ts";
import { newProjectId } from "../../ids.ts";
import { policyOf } from "../../policy/table.ts";
import { checkReferences } from "../../references/references.ts";
import type { Services } from "../../services.ts";
import { checkGroups } from "../../variable-groups/attach.ts";
import { checkCreation, isIdempotencyKey, withTemplate } from "../creation/body.ts";
import { admitCreation, createProject } from "../creation/create.ts";
import { onceByKey } from "../creation/idempotency.ts";
import type { Attempt, Created } from "../creation/outcome.ts";
import { phaseOf } from "../view.ts";
import { ENVIRONMENT_BODY_LIMIT, idempotencyKeyHeader, success } from "./schemas.ts";

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

/** `data` of the answer. */
export const createProjectData = z.object({
  project_id: z.string(),
  type: z.enum(["application", "job", "worker", "database", "managed_service"]),
  domain: z
    .string()
    .describe("Default domain of an application; empty for private ones, absent for others.")
    .optional(),
  build_id: z.string().describe("The first build of a project from a Git repository.").optional(),
  status: z.enum(projectPhases).describe("Of a Valkey service.").optional(),
  database: createdConnection.optional(),
  managed_service: managedServiceCreated.optional(),
});

const GROUPS_FIELD = "config.variable_group_ids";

export const create = defineRoute({
  operationId: "createProject",
  method: "POST",
  path: "/v1/project",
  summary: "Create a project",
  description:
    "The permission depends on config.type_project. With an Idempotency-Key, sending the same body again answers " +
    "the same project, without the password. With template_id and template_revision, what is not sent comes from the template.",
  tags: ["Projects"],
  documentedBody: z.union([...createProjectBody.options, fromTemplate]),
  prepareBody: (body, { catalog }) => withTemplate(body, catalog.current),
  headers: z.object({
    "idempotency-key": idempotencyKeyHeader("Required for Valkey; one key stands for one body."),
  }),
  responses: {
    201: {
      description: "Created; it starts in the background.",
      schema: success({
        message: z.string(),
        data: createProjectData,
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
      refuseForeignImage(wanted.spec.image?.url, "config.image.url", organizationId, services);
      const { grants } = principal as Principal;
      const { variableGroups = [] } = wanted.spec;
      await checkGroups(variableGroups, [], principal as Principal, services.kube, GROUPS_FIELD);
      const referrer = { organizationId, type: wanted.spec.type, grants };
      const references = await checkReferences(wanted.envs, referrer, services);
      await admitCreation(wanted, organizationId, services);
      return references === undefined ? wanted : { ...wanted, references };
    };
    const create = async (wanted: CreateProjectRequest, projectId: string, leftover = false) => {
      await beginCallAudit(request, services, { projectId });
      return createProject(wanted, { organizationId, projectId, leftover }, services);
    };
    const created = isIdempotencyKey(key)
      ? await onceByKey({ organizationId, key, body: request.body }, services, { admit, create })
      : await orFailure(await create(await admit(), newProjectId()));
    requireTypePermission(principal as Principal, created.project.resource.spec.type);
    request.writtenProjectId = created.project.id;
    const data = { ...(await createdData(created, services)), ...firstBuildOf(created.project.id, body) };
    return {
      status: 201,
      headers: { "cache-control": "no-store" },
      body: { status: "success", message: "project created", data },
    };
  },
});

/** From the body, also when the request is repeated: the project's source may be another one by then. */
function firstBuildOf(projectId: string, body: unknown): { build_id?: string } {
  const { config } = (body ?? {}) as { config?: { source?: unknown; github?: unknown } };
  const isBuilt = config?.source !== undefined || config?.github !== undefined;
  return isBuilt ? { build_id: firstBuildId(projectId) } : {};
}

/** `data` of the answer to a creation. */
export async function createdData(created: Created, services: Pick<Services, "projects">) {
  const { id, domain, resource } = created.project;
  const { type } = resource.spec;
  if (isDatabaseType(type)) {
    return databaseData(created, services);
  }
  if (type === "job" || type === "worker") {
    return { project_id: id, type };
  }
  return { project_id: id, domain: domain ?? "", type: "application" };
}

/** With the password for the call that created it, and without for one that repeats it. */
async function databaseData(
  { project: created, credentials }: Created,
  services: Pick<Services, "projects">,
) {
  const project = await awaitAddress(created, services);
  const { id, resource } = project;
  const connection = credentials ? secretConnectionOf(resource, credentials) : connectionOf(resource);
  if (resource.spec.type === "valkey") {
    const managed_service = managedServiceView(project, connection);
    return { project_id: id, status: phaseOf(resource), type: "managed_service", managed_service };
  }
  return { project_id: id, type: "database", database: databaseView(project, connection) };
}

/** @throws Failure once what is left of a refused creation is deleted */
export async function orFailure(attempt: Attempt): Promise<Created> {
  if ("project" in attempt) {
    return attempt;
  }
  // Best effort: what stays behind names its project in a label, and its owner where it has one.
  await attempt.undo?.().catch(() => undefined);
  throw attempt.failure;
}

/** A repeat is answered without its body, so its type is known only now. */
function requireTypePermission(principal: Principal, type: string): void {
  const access = policyOf("createProject")?.access;
  if (access?.kind === "create") {
    requireCreation(principal, access, type);
  }
}

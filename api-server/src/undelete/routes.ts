import { parseQuantity } from "@slipway/controller-runtime";
import { type DeletedProject, PROJECT_ID, projectTypes } from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import { failures } from "../errors/catalog.ts";
import { requireCreation } from "../http/guard.ts";
import { defineRoute } from "../http/route.ts";
import { policyOf } from "../policy/table.ts";
import { lifecycleSchema, success } from "../projects/routes/schemas.ts";
import { phaseOf } from "../projects/view.ts";
import { listRestorable } from "./cluster.ts";
import { findUndeleted, undeleteProject } from "./undelete.ts";

const deletedProject = z.object({
  project_id: z.string(),
  name: z.string(),
  type_project: z.enum(projectTypes),
  plan: z.string(),
  storage: z
    .object({
      volumes: z.int().describe("Volumes that are retained."),
      capacity: z.number().describe("GB of all of them."),
    })
    .describe("What is retained."),
  deleted_at: z.string(),
  expires_at: z.string().describe("When it is deleted for good."),
});

const GIB = 1_073_741_824n * 1_000_000_000n;

/** A deleted project as `/v1` shows it. Pure. */
export function deletedProjectView({ spec }: DeletedProject): z.output<typeof deletedProject> {
  const sizes = spec.volumes.map(({ capacity }) => parseQuantity(capacity) ?? 0n);
  return {
    project_id: spec.projectRef.name,
    name: spec.displayName,
    type_project: spec.type,
    plan: spec.plan,
    storage: {
      volumes: sizes.length,
      capacity: Number(sizes.reduce((sum, size) => sum + size, 0n) / GIB),
    },
    deleted_at: spec.deletedAt,
    expires_at: spec.expiresAt,
  };
}

export const listDeleted = defineRoute({
  operationId: "listDeletedProjects",
  method: "GET",
  path: "/v1/organization/deleted-projects",
  summary: "List the deleted projects that can be undeleted",
  description:
    "Those on plans that retain the volumes of deleted projects, the last deleted first; of them those that the credential " +
    "can read.",
  tags: ["Lifecycle"],
  responses: {
    200: {
      description: "The deleted projects.",
      schema: success({ data: z.object({ projects: z.array(deletedProject) }) }),
    },
  },
  handler: async ({ principal }, { kube, now }) => {
    const { organizationId, grants } = principal as Principal;
    const records = await listRestorable(kube, organizationId, now());
    const readable = records.filter(({ spec }) => grants.onProject("project.read", spec.projectRef.name));
    return { status: 200, body: { status: "success", data: { projects: readable.map(deletedProjectView) } } };
  },
});

export const undelete = defineRoute({
  operationId: "undeleteProject",
  method: "POST",
  path: "/v1/project/:id/undelete",
  summary: "Create a deleted project again as it was",
  description:
    "With its id, name, variables, credentials and volumes; of several deleted projects with this id the last one. Beside " +
    "project.delete it needs the permission to create such a project.",
  tags: ["Lifecycle"],
  responses: {
    200: { description: "Undeleted; its instances start in the background.", schema: lifecycleSchema },
  },
  refusals: [402, 409, 503],
  handler: async ({ principal, request }, services) => {
    const { organizationId } = principal as Principal;
    const { id } = request.params as { id: string };
    if (!PROJECT_ID.test(id)) {
      throw failures.deletedProjectNotFound();
    }
    const records = await listRestorable(services.kube, organizationId, services.now());
    const record = records.find(({ spec }) => spec.projectRef.name === id);
    const undeleted =
      record === undefined ? await findUndeleted({ organizationId, projectId: id }, services) : undefined;
    const type = record?.spec.type ?? undeleted?.resource.spec.type;
    if (type === undefined) {
      throw failures.deletedProjectNotFound();
    }
    const access = policyOf("createProject")?.access;
    if (access?.kind === "create") {
      requireCreation(principal as Principal, access, type);
    }
    const project = record ? await undeleteProject(record, organizationId, services) : undeleted;
    if (project === undefined) {
      throw failures.deletedProjectNotFound();
    }
    request.writtenProjectId = id;
    const data = { project_id: id, status: phaseOf(project.resource) };
    return { status: 200, body: { status: "success", message: "project undeleted", data } };
  },
});

import { fields, projectPhases, projectTypes } from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { defineProjectRoute, defineRoute } from "../../http/route.ts";
import { wholeNumber } from "../../http/validate.ts";
import type { ApiProject } from "../api-project.ts";
import type { ProjectItem } from "../view.ts";
import { pagination, projectItemSchema, projectSchema, success } from "./schemas.ts";

/** The query of the list; the route's schema has checked it. */
export interface ListQuery {
  page: number;
  limit: number;
  type?: string;
  profile?: string;
  status?: string;
  search?: string;
  sort_by: "updated_at" | "created_at";
  sort_order: "asc" | "desc";
}

export interface ProjectPage {
  projects: ProjectItem[];
  pagination: { page: number; limit: number; total: number; pages: number };
}

/** Filters, sorts and cuts out one page. Pure. Projects of the same second are ordered by id, so pages never overlap. */
export function listProjects(projects: readonly ApiProject[], query: ListQuery): ProjectPage {
  const found = projects.filter((project) => matches(project, query));
  const direction = query.sort_order === "asc" ? 1 : -1;
  const time = (project: ApiProject): string =>
    query.sort_by === "created_at" ? (project.resource.metadata.creationTimestamp ?? "") : project.updatedAt;
  const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  found.sort((a, b) => direction * (compare(time(a), time(b)) || compare(a.id, b.id)));
  const start = (query.page - 1) * query.limit;
  return {
    projects: found.slice(start, start + query.limit).map((project) => project.item),
    pagination: {
      page: query.page,
      limit: query.limit,
      total: found.length,
      pages: Math.ceil(found.length / query.limit),
    },
  };
}

function matches(project: ApiProject, { type, profile, status, search }: ListQuery): boolean {
  const { spec } = project.resource;
  return (
    (type === undefined || spec.type === type) &&
    (profile === undefined || spec.profile === profile) &&
    (status === undefined || project.item.status === status) &&
    (search === undefined || contains(spec.name, search) || contains(spec.description ?? "", search))
  );
}

function contains(text: string, search: string): boolean {
  return text.toLowerCase().includes(search.toLowerCase());
}

const query = z
  .strictObject({
    page: wholeNumber(1, 2 ** 31 - 1).default(1),
    limit: wholeNumber(1, 50).default(15),
    type: z.enum(projectTypes).optional(),
    profile: z.enum(["key_value", "cache", "queue"]).optional(),
    status: z.enum(projectPhases).optional(),
    search: fields.text(1, 256, "Matches name or description.").optional(),
    sort_by: z.enum(["updated_at", "created_at"]).default("updated_at"),
    sort_order: z.enum(["desc", "asc"]).default("desc"),
  })
  .refine(({ profile, type }) => profile === undefined || type === "valkey", {
    path: ["profile"],
    message: "profile is allowed only with type=valkey",
    // Also when other parameters are wrong: all broken rules are reported in one answer.
    when: () => true,
  });

export const list = defineRoute({
  operationId: "listProjects",
  method: "GET",
  path: "/v1/project",
  summary: "List the projects that the credential can read",
  tags: ["Projects"],
  query,
  responses: {
    200: {
      description: "One page of projects.",
      schema: success({ data: z.object({ projects: z.array(projectItemSchema), pagination }) }),
    },
  },
  refusals: [400],
  handler: ({ principal, query: listQuery }, { projects }) => {
    const { organizationId, grants } = principal as Principal;
    const readable = projects
      .list(organizationId)
      .filter((project) => grants.onProject("project.read", project.id));
    return { status: 200, body: { status: "success", data: listProjects(readable, listQuery) } };
  },
});

export const read = defineProjectRoute({
  operationId: "readProject",
  method: "GET",
  path: "/v1/project/:id",
  summary: "Read a project",
  tags: ["Projects"],
  responses: { 200: { description: "The project.", schema: success({ data: projectSchema }) } },
  handler: ({ project }) => ({ status: 200, json: project.json }),
});

import { fields, projectPhases, projectTypes } from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { defineProjectRoute, defineRoute } from "../../http/route.ts";
import { wholeNumber } from "../../http/validate.ts";
import type { ApiProject } from "../api-project.ts";
import type { ProjectTable } from "../project-table.ts";
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

/**
 * Filters projects and cuts out one page. Pure. Nothing is created for a project that is not on the page.
 * @param table the oldest first, by the moment that the query names
 * @param isReadable what the caller may read; everything unless given
 */
export function listProjects(
  table: ProjectTable,
  query: ListQuery,
  isReadable?: (project: ApiProject) => boolean,
): ProjectPage {
  const { projects } = table;
  const at = (row: number) => projects[row] as ApiProject;
  let rows = table.rows(query);
  if (isReadable !== undefined) {
    rows = (rows ?? [...projects.keys()]).filter((row) => isReadable(at(row)));
  }
  const total = rows?.length ?? projects.length;
  const start = (query.page - 1) * query.limit;
  const page: ProjectItem[] = [];
  for (let index = start; index < Math.min(start + query.limit, total); index += 1) {
    const place = query.sort_order === "asc" ? index : total - 1 - index;
    page.push(at(rows?.[place] ?? place).item);
  }
  return {
    projects: page,
    pagination: { page: query.page, limit: query.limit, total, pages: Math.ceil(total / query.limit) },
  };
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
    // Once for all of them, where the grant is.
    const isReadable = grants.onEveryProject("project.read")
      ? undefined
      : ({ id }: ApiProject) => grants.onProject("project.read", id);
    const table = projects.table(organizationId, listQuery.sort_by);
    return { status: 200, body: { status: "success", data: listProjects(table, listQuery, isReadable) } };
  },
});

export const read = defineProjectRoute({
  operationId: "readProject",
  method: "GET",
  path: "/v1/project/:id",
  summary: "Read a project",
  tags: ["Projects"],
  responses: { 200: { description: "The project.", schema: success({ data: projectSchema }) } },
  handler: ({ project, principal }) => {
    const may = (permission: "project.logs.read" | "project.metrics.read") =>
      principal?.grants.onProject(permission, project.id) === true;
    const json = project.json({ logs: may("project.logs.read"), metrics: may("project.metrics.read") });
    return { status: 200, json };
  },
});

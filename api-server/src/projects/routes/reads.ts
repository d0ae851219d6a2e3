import { fields, projectPhases, projectTypes } from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { defineProjectRoute, defineRoute } from "../../http/route.ts";
import { wholeNumber } from "../../http/validate.ts";
import type { ApiProject } from "../api-project.ts";
import { type ProjectItem, phaseOf } from "../view.ts";
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
 * Filters projects and cuts out one page. Pure. It creates nothing for a project that is not on the page: of thousands all are visited.
 * @param sorted the oldest first, by the moment that the query names
 * @param isReadable what the caller may read; everything unless given
 */
export function listProjects(
  sorted: readonly ApiProject[],
  query: ListQuery,
  isReadable?: (project: ApiProject) => boolean,
): ProjectPage {
  const isFound = matcher(query, isReadable);
  const start = (query.page - 1) * query.limit;
  const isAscending = query.sort_order === "asc";
  const { length } = sorted;
  const at = (index: number) => sorted[isAscending ? index : length - 1 - index] as ApiProject;
  const page: ApiProject[] = [];
  let total = 0;
  if (isFound === undefined) {
    total = length;
    for (let index = start; index < Math.min(start + query.limit, length); index += 1) {
      page.push(at(index));
    }
  } else {
    for (let index = 0; index < length; index += 1) {
      const project = at(index);
      if (isFound(project)) {
        if (total >= start && page.length < query.limit) {
          page.push(project);
        }
        total += 1;
      }
    }
  }
  return {
    projects: page.map((project) => project.item),
    pagination: { page: query.page, limit: query.limit, total, pages: Math.ceil(total / query.limit) },
  };
}

/** What the query leaves of the projects; undefined when that is all of them. */
function matcher(
  { type, profile, status, search }: ListQuery,
  isReadable: ((project: ApiProject) => boolean) | undefined,
): ((project: ApiProject) => boolean) | undefined {
  const text = search?.toLowerCase();
  const isEverything = [type, profile, status, text, isReadable].every((filter) => filter === undefined);
  if (isEverything) {
    return undefined;
  }
  return (project) => {
    const { resource } = project;
    return (
      (type === undefined || resource.spec.type === type) &&
      (profile === undefined || resource.spec.profile === profile) &&
      (status === undefined || phaseOf(resource) === status) &&
      (text === undefined || project.mentions(text)) &&
      (isReadable === undefined || isReadable(project))
    );
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
    const sorted = projects.list(organizationId, listQuery.sort_by);
    return { status: 200, body: { status: "success", data: listProjects(sorted, listQuery, isReadable) } };
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

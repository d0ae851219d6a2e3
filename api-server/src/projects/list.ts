import type { ApiProject } from "./api-project.ts";
import type { ProjectItem } from "./view.ts";

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

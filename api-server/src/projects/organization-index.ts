import type { StoreEvent } from "@slipway/controller-runtime";
import { organizationOfNamespace, type Project } from "@slipway/crds";
import type { ApiProject } from "./api-project.ts";
import { ProjectTable } from "./project-table.ts";

/** The orders of the list of projects. */
export type SortField = "updated_at" | "created_at";

type Compare = (a: ApiProject, b: ApiProject) => number;

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Oldest first; projects of the same moment by id, so that pages never overlap. */
const orders: Readonly<Record<SortField, Compare>> = {
  updated_at: (a, b) => compareText(a.updatedAt, b.updatedAt) || compareText(a.id, b.id),
  created_at: (a, b) => compareText(a.createdAt, b.createdAt) || compareText(a.id, b.id),
};

/** A project with its view, computed at the first read of it. */
interface Entry {
  readonly project: Project;
  view: ApiProject | undefined;
}

/** The projects of one organization, by id, and once they were listed in the orders of the list. */
class OrganizationProjects {
  readonly #entries = new Map<string, Entry>();
  readonly #tables = new Map<SortField, ProjectTable>();
  readonly #viewOf: (project: Project) => ApiProject;

  constructor(viewOf: (project: Project) => ApiProject) {
    this.#viewOf = viewOf;
  }

  get size(): number {
    return this.#entries.size;
  }

  put(project: Project): void {
    const id = project.metadata.name;
    this.remove(id);
    const entry: Entry = { project, view: undefined };
    this.#entries.set(id, entry);
    for (const [field, table] of this.#tables) {
      const view = this.#view(entry);
      table.insert(positionOf(table.projects, view, orders[field]), view);
    }
  }

  remove(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) {
      return;
    }
    this.#entries.delete(id);
    for (const [field, table] of this.#tables) {
      table.remove(positionOf(table.projects, this.#view(entry), orders[field]));
    }
  }

  find(id: string): ApiProject | undefined {
    const entry = this.#entries.get(id);
    return entry && this.#view(entry);
  }

  sorted(field: SortField): ProjectTable {
    let table = this.#tables.get(field);
    if (table === undefined) {
      table = new ProjectTable();
      const views = Array.from(this.#entries.values(), (entry) => this.#view(entry)).sort(orders[field]);
      for (const [row, view] of views.entries()) {
        table.insert(row, view);
      }
      this.#tables.set(field, table);
    }
    return table;
  }

  #view(entry: Entry): ApiProject {
    entry.view ??= this.#viewOf(entry.project);
    return entry.view;
  }
}

const NO_PROJECTS = new ProjectTable();

/** Where a project is in a sorted list, or would be: the first position that is not before it. */
function positionOf(sorted: readonly ApiProject[], project: ApiProject, compare: Compare): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(sorted[middle] as ApiProject, project) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/**
 * The projects of every organization, kept in order by each change and not by each request. An organization's projects are in a table of
 * their own: no read reaches those of another.
 */
export class OrganizationIndex {
  readonly #organizations = new Map<string, OrganizationProjects>();
  readonly #viewOf: (project: Project) => ApiProject;

  /** @param viewOf makes the view of one state of a project; called at its first read */
  constructor(viewOf: (project: Project) => ApiProject) {
    this.#viewOf = viewOf;
  }

  /** Takes in a change of the store. A project outside of the organizations' namespaces is nobody's. */
  apply({ type, object }: StoreEvent<Project>): void {
    const { namespace = "", name } = object.metadata;
    const organizationId = organizationOfNamespace(namespace);
    if (organizationId === undefined) {
      return;
    }
    const projects = this.#organizations.get(organizationId) ?? new OrganizationProjects(this.#viewOf);
    if (type === "delete") {
      projects.remove(name);
    } else {
      projects.put(object);
    }
    if (projects.size === 0) {
      this.#organizations.delete(organizationId);
    } else {
      this.#organizations.set(organizationId, projects);
    }
  }

  find(organizationId: string, id: string): ApiProject | undefined {
    return this.#organizations.get(organizationId)?.find(id);
  }

  /** Every project of an organization, oldest first. */
  sorted(organizationId: string, field: SortField): ProjectTable {
    return this.#organizations.get(organizationId)?.sorted(field) ?? NO_PROJECTS;
  }
}

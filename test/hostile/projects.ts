import { apiClient, createProject, deleteProjects } from "../e2e/support/api.ts";
import { createDatabase, type DatabaseProject } from "../e2e/support/databases.ts";
import { eventually } from "../e2e/support/eventually.ts";
import type { Organization } from "../e2e/support/organization.ts";

/** Projects of an attacker, to be removed when it has ended. */
export interface Projects {
  readonly call: ReturnType<typeof apiClient>;
  /** Creates one, and waits for its organization's namespace and rate limit, which an attack before may have used up. @returns its id */
  create(body: object): Promise<string>;
  createDatabase(body: object): Promise<DatabaseProject>;
  /** Has another one removed, too. */
  add(id: string): void;
  remove(): Promise<void>;
}

export function projectsOf({ api_key, organization_id }: Organization): Projects {
  const call = apiClient(api_key);
  const made: string[] = [];
  return {
    call,
    async create(body) {
      const { project_id } = await eventually(() => createProject(call, body));
      made.push(project_id);
      return project_id;
    },
    add: (id) => made.push(id),
    async createDatabase(body) {
      const database = await eventually(() => createDatabase(call, body, organization_id));
      made.push(database.id);
      return database;
    },
    remove: () => deleteProjects(call, made),
  };
}

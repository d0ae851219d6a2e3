import { apiClient, createProject, deleteProjects } from "../e2e/support/api.ts";
import { eventually } from "../e2e/support/eventually.ts";
import type { Organization } from "../e2e/support/organization.ts";

/** Projects of an attacker, to be removed when it has ended. */
export interface Projects {
  readonly call: ReturnType<typeof apiClient>;
  /** Creates one, and waits for its organization's namespace, which may be a moment behind. @returns its id */
  create(body: object): Promise<string>;
  /** Has another one removed, too. */
  add(id: string): void;
  remove(): Promise<void>;
}

export function projectsOf({ api_key }: Organization): Projects {
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
    remove: () => deleteProjects(call, made),
  };
}

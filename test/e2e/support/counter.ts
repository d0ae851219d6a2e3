import { type apiClient, createProject, httpProject, uniqueName, untilStatus } from "./api.ts";
import { namespaceOf, stack } from "./stack.ts";

/** A project of the organization whose log shows how often commands of other projects have run: each requests a path of its own of it. */

type Call = ReturnType<typeof apiClient>;

export interface Counter {
  /** The project's id. */
  readonly id: string;
  /** A command that reports to the counter as `name`, takes so many milliseconds, and ends with a code. */
  command(name: string, milliseconds: number, code: number): string[];
  /** The versions that have begun a command of this name, in order. */
  reports(name: string): Promise<string[]>;
}

/** Creates one, and waits until it runs. */
export async function createCounter(call: Call): Promise<Counter> {
  const project = httpProject(uniqueName("counts"), { exposure: "private" });
  const { project_id: id } = await createProject(call, project);
  await untilStatus(call, id, "running");
  const url = `http://${id}.${namespaceOf(stack.organization)}.svc`;
  return {
    id,
    command: (name, milliseconds, code) => [
      "/sample-http",
      "migrate",
      `${url}/${name}`,
      String(milliseconds),
      String(code),
    ],
    reports: async (name) => {
      const log = JSON.stringify((await call("GET", `/v1/project/${id}/logs`)).body);
      return [...log.matchAll(new RegExp(`GET /${name}/(v\\d) 200`, "g"))].map(([, version = ""]) => version);
    },
  };
}

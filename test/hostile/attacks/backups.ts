import { databaseProject, untilReady } from "../../e2e/support/databases.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

export const backups: Attack = {
  name: "backups",
  about: "a backup every minute, and one requested by each of four clients in a loop",
  seconds: 70,
  expected: ["202", "402", "403", "409", "429", "503"],
  async prepare({ url, organizations: [, organization] }) {
    const projects = projectsOf(organization);
    const database = await projects.createDatabase(
      databaseProject("db-basic", { type_project: "postgresql", version: "17" }),
    );
    await untilReady(database);
    await projects.call("PUT", `/v1/project/${database.id}/backups/policy`, { schedule: "* * * * *" });
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 4,
            count: 400,
            restMs: 500,
            next: () => ({
              method: "POST",
              path: `/v1/project/${database.id}/backups`,
              headers: { "x-api-key": organization.api_key },
            }),
          },
          signal,
        ),
      clean: projects.remove,
    };
  },
};

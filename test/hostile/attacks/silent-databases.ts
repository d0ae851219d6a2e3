import { setTimeout as sleep } from "node:timers/promises";
import { httpProject, untilStatus } from "../../e2e/support/api.ts";
import {
  type DatabaseProject,
  databaseProject,
  podsOfDatabase,
  untilReady,
} from "../../e2e/support/databases.ts";
import { signalPod } from "../../e2e/support/process.ts";
import { type Attack, Tally } from "../attack.ts";
import { projectsOf } from "../projects.ts";

/** MariaDB groups of three: the operator queries their members, and with nine pods waits for each of them. */
const GROUPS = 3;
/** In which an application must run that is created meanwhile, in milliseconds. */
const ROLLOUT_MS = 45_000;

/** All processes of all pods, as on a node that has died and is not yet known to have. */
async function signalAll(databases: readonly DatabaseProject[], signal: NodeJS.Signals): Promise<number> {
  const pods = (await Promise.all(databases.map(podsOfDatabase))).flat();
  const counts = await Promise.all(pods.map(({ metadata }) => signalPod(metadata?.name ?? "", signal)));
  return counts.filter((count) => count > 0).length;
}

export const silentDatabases: Attack = {
  name: "silent-databases",
  about: "the nine members of three MariaDB groups stop answering, and an application is created",
  seconds: 60,
  isAlone: true,
  expected: ["9 members silent", "the application ran in time"],
  async prepare({ organizations: [, organization] }) {
    const projects = projectsOf(organization);
    const databases: DatabaseProject[] = [];
    // One after the other: nine pods that start concurrently are an attack of their own.
    for (let group = 0; group < GROUPS; group += 1) {
      const body = databaseProject("db-premium", { type_project: "mariadb", version: "11", instances: 3 });
      const made = await projects.createDatabase(body);
      databases.push(made);
      await untilReady(made, 360_000);
    }
    return {
      async run(signal) {
        const tally = new Tally();
        try {
          tally.add(`${await signalAll(databases, "SIGSTOP")} members silent`);
          // The operator's next questions are under way.
          await sleep(10_000, undefined, { signal });
          const start = performance.now();
          const id = await projects.create(httpProject("beside-silent-databases"));
          await untilStatus(projects.call, id, "running");
          const took = performance.now() - start;
          tally.add(
            took < ROLLOUT_MS
              ? "the application ran in time"
              : `the application took ${Math.round(took / 1_000)} s`,
          );
        } finally {
          await signalAll(databases, "SIGCONT");
        }
        return tally.answers();
      },
      clean: projects.remove,
    };
  },
};

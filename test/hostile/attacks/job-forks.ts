import { setTimeout as sleep } from "node:timers/promises";
import { untilStatus } from "../../e2e/support/api.ts";
import { jobProject } from "../../e2e/support/jobs.ts";
import { type Attack, Tally } from "../attack.ts";
import { projectsOf } from "../projects.ts";
import { endAndRemove } from "./container-disk.ts";

/** Ends on its own: a process that does not fork any more sleeps for a minute. */
const SCRIPT = "f() { f | f & }; f; sleep 60";

export const jobForks: Attack = {
  name: "job-forks",
  about: "a job whose processes multiply without end",
  seconds: 20,
  expected: ["202"],
  async prepare({ organizations: [organization] }) {
    const projects = projectsOf(organization);
    const id = await projects.create(jobProject({ name: "job-forks", script: SCRIPT }));
    await untilStatus(projects.call, id, "running");
    return {
      async run(signal) {
        const tally = new Tally();
        const { status } = await projects.call("POST", `/v1/project/${id}/job-runs`);
        tally.add(String(status));
        await sleep(20_000, undefined, { signal }).catch(() => undefined);
        return tally.answers();
      },
      clean: () => endAndRemove(projects, id),
    };
  },
};

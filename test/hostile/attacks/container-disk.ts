import { setTimeout as sleep } from "node:timers/promises";
import { untilStatus } from "../../e2e/support/api.ts";
import { jobProject } from "../../e2e/support/jobs.ts";
import { type Attack, Tally } from "../attack.ts";
import { projectsOf } from "../projects.ts";

/** 250 GiB are requested; a machine's disk has less, so a container that nothing ends stops automatically at 6 GiB. */
const SCRIPT =
  "i=0; while [ $i -lt 24 ]; do dd if=/dev/zero of=/tmp/f$i bs=1M count=256 2>/dev/null || exit 9; i=$((i+1)); sleep 0.5; done; echo wrote all; sleep 600";

export const containerDisk: Attack = {
  name: "container-disk",
  about: "a container that writes until it is ended, past the storage of its plan",
  seconds: 60,
  expected: ["failed", "running"],
  async prepare({ organizations: [organization] }) {
    const projects = projectsOf(organization);
    const id = await projects.create(jobProject({ name: "container-disk", script: SCRIPT }));
    await untilStatus(projects.call, id, "running");
    return {
      async run(signal) {
        const tally = new Tally();
        const runs = `/v1/project/${id}/job-runs`;
        await projects.call("POST", runs);
        let status = "running";
        while (!signal.aborted && status === "running") {
          await sleep(1_000, undefined, { signal }).catch(() => undefined);
          const read = await projects.call<{ runs: { status: string }[] }>("GET", runs);
          status = read.body.data?.runs[0]?.status ?? "running";
        }
        tally.add(status);
        return tally.answers();
      },
      clean: () => endAndRemove(projects, id),
    };
  },
};

/** Cancels what runs of a job and removes it. */
export async function endAndRemove(
  { call, remove }: ReturnType<typeof projectsOf>,
  id: string,
): Promise<void> {
  const read = await call<{ runs: { id: string }[] }>("GET", `/v1/project/${id}/job-runs?status=running`);
  for (const run of read.body.data?.runs ?? []) {
    await call("POST", `/v1/project/${id}/job-runs/${run.id}/cancel`);
  }
  await remove();
}

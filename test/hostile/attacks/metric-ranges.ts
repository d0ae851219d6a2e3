import { setTimeout as sleep } from "node:timers/promises";
import { httpProject, untilStatus } from "../../e2e/support/api.ts";
import { type Attack, Tally } from "../attack.ts";
import { projectsOf } from "../projects.ts";

/** Concurrent clients of each organization. */
const CLIENTS = 20;
const RANGES = [
  "range_seconds=691200&resolution_seconds=1386",
  "range_seconds=691200",
  "range_seconds=7485&resolution_seconds=15",
];

export const metricRanges: Attack = {
  name: "metric-ranges",
  about:
    "40 clients of two organizations that ask again and again for the longest and finest histories of metrics, of projects that are new: how many queries there are is attacked, not how much each reads",
  seconds: 20,
  expected: ["200", "429", "503"],
  required: ["200"],
  async prepare({ organizations }) {
    const sides = await Promise.all(
      organizations.map(async (organization) => {
        const projects = projectsOf(organization);
        const id = await projects.create(httpProject("metric-ranges", { instances: 2 }));
        await untilStatus(projects.call, id, "running");
        return { projects, id };
      }),
    );
    return {
      async run(signal) {
        const tally = new Tally();
        const ask = async ({ projects, id }: (typeof sides)[number]) => {
          for (let number = 0; !signal.aborted; number += 1) {
            const range = RANGES[number % RANGES.length];
            const { status } = await projects.call("GET", `/v1/project/${id}/metrics?${range}`);
            tally.add(String(status));
            await sleep(status === 200 ? 0 : 50, undefined, { signal }).catch(() => undefined);
          }
        };
        await Promise.all(sides.flatMap((side) => Array.from({ length: CLIENTS }, () => ask(side))));
        return tally.answers();
      },
      clean: async () => {
        await Promise.all(sides.map(({ projects }) => projects.remove()));
      },
    };
  },
};

import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import { httpProject, readProject, untilStatus } from "../../e2e/support/api.ts";
import { stack } from "../../e2e/support/stack.ts";
import { type Attack, Tally } from "../attack.ts";
import { projectsOf } from "../projects.ts";

/** Lines of one request, about 200 bytes each: 20 MB, which a node keeps twice over. */
const LINES = 100_000;
const TEXT = "flood".repeat(38);

export const logFlood: Attack = {
  name: "log-flood",
  about:
    "applications of two organizations that write 100,000 lines again and again, while their logs are searched",
  seconds: 30,
  expected: ["200", "429", "503", "written", "not written"],
  required: ["200", "written"],
  async prepare({ organizations }) {
    const sides = await Promise.all(
      organizations.map(async (organization) => {
        const projects = projectsOf(organization);
        const envs = [{ name: "SAMPLE_FAULTS", value: "1" }];
        const id = await projects.create(httpProject("log-flood", { envs }));
        await untilStatus(projects.call, id, "running");
        const { domain = "" } = await readProject(projects.call, id);
        return { projects, id, domain };
      }),
    );
    return {
      async run(signal) {
        const tally = new Tally();
        const write = async (domain: string) => {
          while (!signal.aborted) {
            const url = `${stack.ingressUrl}/lines/${LINES}?text=${TEXT}`;
            const answer = await request(url, { method: "POST", headers: { host: domain }, signal })
              .then(({ statusCode, body }) => body.dump().then(() => statusCode))
              .catch(() => 0);
            tally.add(answer === 200 ? "written" : "not written");
            await sleep(answer === 200 ? 0 : 500, undefined, { signal }).catch(() => undefined);
          }
        };
        const search = async ({ projects, id }: (typeof sides)[number]) => {
          for (let number = 0; !signal.aborted; number += 1) {
            const path = `/v1/project/${id}/logs/search?q=none-has-this-${number}&limit=200`;
            const { status } = await projects.call("GET", path);
            tally.add(String(status));
            await sleep(50, undefined, { signal }).catch(() => undefined);
          }
        };
        await Promise.all(sides.flatMap((side) => [write(side.domain), search(side), search(side)]));
        return tally.answers();
      },
      clean: async () => {
        await Promise.all(sides.map(({ projects }) => projects.remove()));
      },
    };
  },
};

import { setTimeout as pause } from "node:timers/promises";
import { throughIngress } from "../../e2e/support/ingress.ts";
import { createSleeper, untilAsleep } from "../../e2e/support/sleep.ts";
import { stack } from "../../e2e/support/stack.ts";
import { type Attack, Tally } from "../attack.ts";
import { closed, connections, open } from "../connections.ts";
import { projectsOf } from "../projects.ts";

/** Longest time in which another organization's project must wake meanwhile, in milliseconds. */
const WAKE_MS = 20_000;

/** More requests than a project, and an organization, may have in hand of both activators. */
const COUNT = 1_200;

export const sleepers: Attack = {
  name: "sleepers",
  about:
    "1,200 requests whose bodies never end, for one project that sleeps, while the project of another organization is to wake",
  seconds: 15,
  // Those beyond what a project may have in hand are refused; the ingress may not see that answer while it still sends a body.
  expected: ["200", "502", "503", closed, open, "other: 200"],
  required: ["503", "other: 200"],
  async prepare({ organizations }) {
    const sides = await Promise.all(
      organizations.map(async (organization) => {
        const projects = projectsOf(organization);
        const sleeper = await createSleeper(projects.call, "sleepers");
        projects.add(sleeper.id);
        return { projects, sleeper };
      }),
    );
    await Promise.all(sides.map(({ projects, sleeper }) => untilAsleep(projects.call, sleeper)));
    const [attacker, other] = sides as [(typeof sides)[0], (typeof sides)[0]];
    const head = `POST / HTTP/1.1\r\nHost: ${attacker.sleeper.domain}\r\nContent-Length: 10000000\r\n\r\n`;
    return {
      async run(signal) {
        const tally = new Tally();
        const attack = connections(
          {
            url: stack.ingressUrl,
            count: COUNT,
            perSecond: 1_000,
            first: () => [head, "x".repeat(60_000)],
            drip: { everyMs: 1_000, bytes: "x" },
          },
          signal,
        );
        await pause(2_000);
        const began = performance.now();
        const { status } = await throughIngress(other.sleeper.domain);
        const isLate = performance.now() - began > WAKE_MS;
        tally.add(isLate ? "other: late" : `other: ${status}`);
        for (const [answer, count] of Object.entries(await attack)) {
          tally.add(answer, count);
        }
        return tally.answers();
      },
      clean: async () => {
        await Promise.all(sides.map(({ projects }) => projects.remove()));
      },
    };
  },
};

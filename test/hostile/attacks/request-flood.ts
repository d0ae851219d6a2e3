import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { httpProject, readProject, untilStatus } from "../../e2e/support/api.ts";
import { stack } from "../../e2e/support/stack.ts";
import { traffic } from "../../e2e/support/traffic.ts";
import { type Attack, Tally } from "../attack.ts";
import { type Projects, projectsOf } from "../projects.ts";

/** Connections over which the attacker sends what is answered as fast as it is. */
const CONNECTIONS = 8;
/** Of the other organization's project, requests a second: two instances have the half each. */
const RATE = 20;
/** While the attacker's requests are counted, too. */
const SCALED = "another organization's second instance within 75 s";
const SCALED_WITHIN_MS = 75_000;
/** The flood starts as many instances as its project may have, and no more. */
const BOUNDED = "instances up to the bound";
const MOST = 2;
/** Reads of projects count for the rate limits of the one who is measured, too. */
const POLL_MS = 5_000;

/** An application that is scaled by its requests. */
async function scaledProject(projects: Projects, name: string, target: number) {
  const autoscaling = {
    enabled: true,
    max_instances: MOST,
    cpu_target_percentage: 100,
    requests_per_second_target: target,
  };
  const id = await projects.create({ ...httpProject(name, { autoscaling }), plan: "premium" });
  await untilStatus(projects.call, id, "running");
  const { domain = "" } = await readProject(projects.call, id);
  return { id, domain };
}

export const requestFlood: Attack = {
  name: "request-flood",
  about:
    "eight clients that send requests without rest to an application which is scaled by them, while another organization's is scaled by its own",
  seconds: 80,
  expected: ["200", "429", "502", "503", "504", "no answer", SCALED, BOUNDED],
  required: ["200", SCALED, BOUNDED],
  async prepare({ organizations: [attacker, other] }) {
    const [own, others] = [projectsOf(attacker), projectsOf(other)];
    const [flooded, scaled] = await Promise.all([
      scaledProject(own, "request-flood", 1),
      scaledProject(others, "request-flood-other", RATE / 2),
    ]);
    type Instances = { additional_info: { current_instances: number } };
    /** Undefined where the API does not say. */
    const instancesOf = async ({ call }: Projects, id: string): Promise<number | undefined> => {
      const { status, body } = await call<Instances>("GET", `/v1/project/${id}`);
      return status === 200 ? body.data?.additional_info.current_instances : undefined;
    };
    /** The most instances that the flooded project has until the flood ends. */
    const mostDuring = async (signal: AbortSignal): Promise<number> => {
      let most = 0;
      while (!signal.aborted) {
        most = Math.max(most, (await instancesOf(own, flooded.id)) ?? 0);
        await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
      }
      return most;
    };
    const othersScale = async (): Promise<boolean> => {
      // Once the flood is being counted.
      await sleep(5_000);
      const running = traffic(scaled.domain, "/", RATE);
      const end = performance.now() + SCALED_WITHIN_MS;
      try {
        while (performance.now() < end) {
          if ((await instancesOf(others, scaled.id)) === MOST) {
            return true;
          }
          await sleep(POLL_MS);
        }
        return false;
      } finally {
        await running.stop();
      }
    };
    return {
      run: async (signal) => {
        const tally = new Tally();
        const pool = new Pool(stack.ingressUrl, { connections: CONNECTIONS });
        const flood = async (): Promise<void> => {
          while (!signal.aborted) {
            const answer = await pool
              .request({ method: "GET", path: "/flood", headers: { host: flooded.domain }, signal })
              .then(({ statusCode, body }) => body.dump().then(() => String(statusCode)))
              .catch(() => "no answer");
            if (!signal.aborted) {
              tally.add(answer);
            }
          }
        };
        const isScaled = othersScale();
        const most = mostDuring(signal);
        await Promise.all(Array.from({ length: CONNECTIONS }, flood));
        // It was scaled, as far as it may be.
        const isBounded = (await most) === MOST;
        await pool.destroy();
        return {
          ...tally.answers(),
          ...((await isScaled) ? { [SCALED]: 1 } : {}),
          ...(isBounded ? { [BOUNDED]: 1 } : {}),
        };
      },
      clean: async () => {
        await Promise.all([own.remove(), others.remove()]);
      },
    };
  },
};

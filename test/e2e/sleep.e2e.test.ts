import { setTimeout as pause } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import { apiClient, deleteProjects, uniqueName } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress } from "./support/ingress.ts";
import { killOperator, leader, systemNamespace } from "./support/operator.ts";
import { killProcess } from "./support/process.ts";
import { createSleeper, expectAwake, type Sleeper, untilAsleep } from "./support/sleep.ts";

/** Sleeps of each project, and projects that sleep beside each other: 6 together, or 1,008 in the long form. */
const [CYCLES, PROJECTS] = isLong ? [63, 16] : [2, 3];
/** Requests that come for a project at the same time. */
const REQUESTS = 5;
/** Sleeps whose end processes are killed in. */
const KILLED = isLong ? 20 : 1;

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

const random = (least: number, most: number) => least + Math.random() * (most - least);

async function sleeper(name: string): Promise<Sleeper> {
  const project = await createSleeper(call, uniqueName(name));
  made.push(project.id);
  return project;
}

/** Requests at the same time, all of which have to be answered. @returns how long the last took, in milliseconds */
async function request({ domain }: Sleeper): Promise<number> {
  const began = performance.now();
  const answers = await Promise.all(Array.from({ length: REQUESTS }, () => throughIngress(domain)));
  expect(answers.map(({ status }) => status)).toEqual(Array(REQUESTS).fill(200));
  return performance.now() - began;
}

/** Wakes one that is asleep. Afterwards requests come through the time in which the ingress follows. */
async function wake(project: Sleeper): Promise<number> {
  await untilAsleep(call, project);
  const took = await request(project);
  await eventually(async () => {
    await request(project);
    await expectAwake(call, project);
  });
  return took;
}

/** Requests at any moment of its way into a sleep: while it runs, its routes change, its instances end, or it has none. */
async function surprise(project: Sleeper): Promise<void> {
  await pause(random(15_000, 40_000));
  for (let round = 0; round < 5; round += 1) {
    await request(project);
    await pause(random(0, 500));
  }
}

// Shows: docs/sleep.md#waking: a request waits up to a minute, with its body unread, and is answered by an
test(
  `${CYCLES * PROJECTS} sleeps end with the first request, and none is lost`,
  async () => {
    const waits: number[] = [];
    let slept = 0;
    const cycles = async (index: number) => {
      const project = await sleeper(`sleep${index}`);
      for (let cycle = 0; cycle < CYCLES; cycle += 1) {
        // Every third comes when it may.
        if ((index + cycle) % 3 === 2) {
          await surprise(project);
        } else {
          waits.push(await wake(project));
        }
        slept += 1;
        if (slept % 100 === 0) {
          console.log(`${slept} sleeps have ended`);
        }
      }
    };
    await Promise.all(Array.from({ length: PROJECTS }, (_, index) => cycles(index)));
    const sorted = waits.toSorted((a, b) => a - b);
    const p95 = sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0;
    console.log(`${waits.length} wakes: p95 of the first answers ${Math.round(p95)} ms`);
    expect(p95).toBeLessThan(30_000);
  },
  isLong ? 4 * 3_600_000 : 300_000,
);

async function killActivator(): Promise<void> {
  const pods = await cluster.core.listNamespacedPod({
    namespace: systemNamespace,
    labelSelector: "app.kubernetes.io/name=slipway-activator",
  });
  const names = pods.items.map(({ metadata }) => metadata?.name ?? "");
  await killProcess(names[Math.floor(random(0, names.length))] ?? "", "dist/activator.js");
}

test(
  "a project wakes though an activator and the leading operator are killed meanwhile, and who asks again is answered",
  async () => {
    const project = await sleeper("killed");
    for (let round = 0; round < KILLED; round += 1) {
      await untilAsleep(call, project);
      let cut = 0;
      const kill = (one: () => Promise<void>) =>
        pause(random(0, 3_000)).then(() => eventually(one, { within: 60_000, every: 200 }));
      const answered = Array.from({ length: 2 * REQUESTS }, () =>
        eventually(
          async () => {
            const { status } = await throughIngress(project.domain).catch(() => ({ status: 0 }));
            cut += status === 200 ? 0 : 1;
            expect(status).toBe(200);
          },
          { within: 120_000 },
        ),
      );
      await Promise.all([...answered, kill(killActivator), kill(async () => killOperator(await leader()))]);
      console.log(`${cut} requests were cut off and sent again`);
      await eventually(() => expectAwake(call, project));
    }
  },
  isLong ? 3_600_000 : 300_000,
);

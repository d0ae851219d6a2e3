import { afterAll, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress } from "./support/ingress.ts";

/** Sleeps of each project, and projects that sleep beside each other: 5 together, or 1,000 in the long form. */
const [CYCLES, PROJECTS] = isLong ? [50, 20] : [2, 3];
/** Requests that come for a project that sleeps at the same time. */
const REQUESTS = 5;

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

interface Sleeping {
  status: string;
  sleeping_since?: string;
}
const read = async (id: string) => (await call<Sleeping>("GET", `/v1/project/${id}`)).body.data;

async function cycles(index: number): Promise<number[]> {
  const project = await createProject(
    call,
    httpProject(uniqueName(`sleep${index}`), { sleep_after_seconds: 10 }),
  );
  made.push(project.project_id);
  const { project_id: id, domain } = project;
  await untilStatus(call, id, "running");
  const waits: number[] = [];
  for (let cycle = 0; cycle < CYCLES; cycle += 1) {
    await eventually(
      async () =>
        expect(await read(id)).toMatchObject({ status: "running", sleeping_since: expect.any(String) }),
      { within: 90_000, every: 1_000 },
    );
    const began = performance.now();
    const answers = await Promise.all(Array.from({ length: REQUESTS }, () => throughIngress(domain)));
    waits.push(performance.now() - began);
    expect(answers.map(({ status }) => status)).toEqual(Array(REQUESTS).fill(200));
    // Through the time in which the ingress follows, too.
    await eventually(async () => {
      expect((await throughIngress(domain)).status).toBe(200);
      expect(await read(id)).not.toHaveProperty("sleeping_since");
    });
  }
  return waits;
}

// Shows: docs/sleep.md#waking: a request waits up to a minute, with its body unread, and is answered by an
test(
  `${CYCLES * PROJECTS} sleeps end with the first request, and none is lost`,
  async () => {
    const waits = (await Promise.all(Array.from({ length: PROJECTS }, (_, index) => cycles(index)))).flat();
    const sorted = waits.toSorted((a, b) => a - b);
    const p95 = sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0;
    console.log(`${waits.length} wakes: p95 of the first answers ${Math.round(p95)} ms`);
    expect(p95).toBeLessThan(30_000);
  },
  isLong ? 4 * 3_600_000 : 240_000,
);

import { expect } from "vitest";
import { type apiClient, createProject, httpProject, untilStatus } from "./api.ts";
import { eventually } from "./eventually.ts";

type Call = ReturnType<typeof apiClient>;

interface Sleeping {
  readonly status: string;
  readonly sleeping_since?: string;
}

/** A project that sleeps after ten seconds without a request, the least there is. */
export interface Sleeper {
  readonly id: string;
  readonly domain: string;
}

/** Creates one, and waits until it runs. */
export async function createSleeper(call: Call, name: string): Promise<Sleeper> {
  const { project_id: id, domain } = await createProject(
    call,
    httpProject(name, { sleep_after_seconds: 10 }),
  );
  await untilStatus(call, id, "running");
  return { id, domain };
}

const read = async (call: Call, { id }: Sleeper) =>
  (await call<Sleeping>("GET", `/v1/project/${id}`)).body.data;

/** Waits until no instance of it runs. */
export async function untilAsleep(call: Call, sleeper: Sleeper): Promise<void> {
  const asleep = { status: "running", sleeping_since: expect.any(String) };
  await eventually(async () => expect(await read(call, sleeper)).toMatchObject(asleep), { every: 1_000 });
}

/** @throws while it sleeps */
export async function expectAwake(call: Call, sleeper: Sleeper): Promise<void> {
  expect(await read(call, sleeper)).not.toHaveProperty("sleeping_since");
}

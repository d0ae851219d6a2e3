import { expect } from "vitest";
import { uniqueName } from "../api.ts";
import { eventually } from "../eventually.ts";
import { throughIngress } from "../ingress.ts";
import { createSleeper, untilAsleep } from "../sleep.ts";
import { ROUNDS, type World, within } from "./world.ts";

/** A project that sleeps, and answers who asks again where what held the request was killed. */
export async function sleeps(world: World): Promise<string> {
  const { call, made } = world;
  const sleeper = await createSleeper(call, uniqueName("sleeps"));
  made.push(sleeper.id);
  for (let round = 1; round <= ROUNDS; round += 1) {
    await untilAsleep(call, sleeper);
    await eventually(async () => expect((await throughIngress(sleeper.domain)).status).toBe(200), { within });
  }
  return `${ROUNDS} sleeps`;
}

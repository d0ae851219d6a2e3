/**
 * What a deployed application has, while any of the platform's processes are killed at any moment (--long): each promise that says
 * "once", "none lost" or "in the end" is kept over all of them together.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import { apiClient } from "./support/api.ts";
import { alerts } from "./support/killed-processes/alerts.ts";
import { commands } from "./support/killed-processes/commands.ts";
import { deploys } from "./support/killed-processes/deployments.ts";
import { logs } from "./support/killed-processes/logs.ts";
import { renews } from "./support/killed-processes/renewals.ts";
import { runs } from "./support/killed-processes/runs.ts";
import { scales } from "./support/killed-processes/scaling.ts";
import { sleeps } from "./support/killed-processes/sleeps.ts";
import { closeWorld, createWorld, type World } from "./support/killed-processes/world.ts";
import { repeating, startKiller } from "./support/killer.ts";

let world: World;
beforeAll(async () => {
  if (isLong) {
    world = await createWorld(repeating(apiClient()));
  }
}, 600_000);
afterAll(() => world && closeWorld(world));

// Shows: docs/applications.md#one-off-runs: it begins once and is charged once, also over operators that are killed
test.skipIf(!isLong)(
  "operators, API servers, collectors, drains and activators are killed at random moments, and every promise is kept (--long)",
  async () => {
    const killer = startKiller();
    const paths = { deploys, runs, renews, logs, alerts, scales, commands, sleeps };
    const kept = await Promise.allSettled(Object.values(paths).map((path) => path(world)));
    const kills = await killer.stop();
    console.log(`killed: ${JSON.stringify(kills)}`);
    const names = Object.keys(paths);
    const broken = kept.flatMap((one, index) => {
      console.log(`${names[index]}: ${one.status === "fulfilled" ? one.value : one.reason}`);
      return one.status === "rejected" ? [`${names[index]}: ${String(one.reason).slice(0, 2_000)}`] : [];
    });
    expect(broken).toEqual([]);
    expect(
      Object.values(kills).filter((count) => count === 0),
      JSON.stringify(kills),
    ).toEqual([]);
    expect(world.receiver.refused).toEqual([]);
  },
  3_600_000,
);

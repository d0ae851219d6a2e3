import { setTimeout as sleep } from "node:timers/promises";
import type { Manager, Runnable } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import type { AlertChange } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { addAlerts } from "./controller.ts";

test("a store that cannot be opened ends neither the process nor alerts that need none", async () => {
  const alerts = [
    { name: "failed", metric: "failed_deployment" },
    { name: "memory", metric: "memory", threshold: 90 },
  ];
  const project = {
    metadata: { name: "pshop", namespace: "slipway-org-acme", uid: "u" },
    spec: { type: "http", alerts },
    status: { deployments: [{ status: "failed" }] },
  } as unknown as Project;
  const runnables: Runnable[] = [];
  const manager = {
    ...{ clock: { now: () => new Date(), monotonic: () => performance.now() }, log: silentLogger },
    ...{ registry: new Registry(), owns: () => true, addRunnable: (one: Runnable) => runnables.push(one) },
  } as unknown as Manager;
  let opened = 0;
  const changes: AlertChange[] = [];
  const ended = new AbortController();
  addAlerts(manager, {
    ledger: {
      list: async () => [],
      change: async (given) => {
        changes.push(...given);
        return {
          recorded: given.map((one) => ({ ...one, state: "firing", since: new Date() })),
          changed: given.length,
        };
      },
    },
    openStore: () => {
      opened += 1;
      if (opened === 3) {
        ended.abort();
      }
      throw new Error("ENOENT: no such file, open password");
    },
    projects: { hasSynced: true, list: () => [project] } as never,
    periodMs: 1,
  });
  const run = runnables[0]?.run(ended.signal);
  await expect(Promise.race([run, sleep(10_000, "still running")])).resolves.toBeUndefined();
  expect(opened).toBe(3);
  expect(changes.map(({ name, state }) => [name, state])).toEqual([["failed", "firing"]]);
});

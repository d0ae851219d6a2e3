import type { Deployment, ProjectStatus } from "@slipway/crds";
import { expect, test } from "vitest";
import { takeOver } from "./take-over.ts";

const copy = (resolved: string) => [{ source: "VariableGroup/mail", resolved }];
const deployment = (id: string): Deployment => ({
  id,
  status: "in_progress",
  startedAt: "2026-01-01T00:00:00Z",
  settingsHash: id,
  updatedImage: false,
  image: { reference: "app" },
  settings: { plan: "basic" },
});
const served = (): ProjectStatus => ({ sharedVariables: copy("before"), deployments: [deployment("d1")] });

test("values are not taken over by what fails before a deployment has begun", async () => {
  const status = served();
  const failing = takeOver(status, async () => {
    status.sharedVariables = copy("after");
    throw new Error("the domain is another project's");
  });
  await expect(failing).rejects.toThrow("another project's");
  expect(status.sharedVariables).toEqual(copy("before"));
});

test("they are by one that has begun, which counts from then on, and by what succeeds", async () => {
  const begun = served();
  const failing = takeOver(begun, async () => {
    begun.sharedVariables = copy("after");
    begun.deployments = [deployment("d2"), deployment("d1")];
    throw new Error("refused");
  });
  await expect(failing).rejects.toThrow("refused");
  expect(begun.sharedVariables).toEqual(copy("after"));
  const applied = served();
  const result = await takeOver(applied, async () => {
    applied.sharedVariables = copy("after");
    return "applied";
  });
  expect([result, applied.sharedVariables]).toEqual(["applied", copy("after")]);
});

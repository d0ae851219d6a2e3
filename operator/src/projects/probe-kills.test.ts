import { expect, test } from "vitest";
import { type KillEvent, slimKill } from "./probe-kills.ts";

const event = (message: string): KillEvent => ({
  apiVersion: "v1",
  kind: "Event",
  metadata: { name: "e", namespace: "n", uid: "u", resourceVersion: "7", managedFields: [] } as never,
  involvedObject: { namespace: "n", name: "pod", uid: "p" },
  message,
  lastTimestamp: "2026-01-01T00:00:00Z",
});

// The kubelet's own words.
test.each([
  ["Container app failed liveness probe, will be restarted", "liveness"],
  ["Container app failed startup probe, will be restarted", "startup"],
  ["Stopping container app", undefined],
  ["Container database failed liveness probe, will be restarted", undefined],
  ["FailedPostStartHook", undefined],
])("%s", (message, probe) => {
  const slim = slimKill(event(message));
  expect(slim.probe).toBe(probe);
  expect(slim.lastTimestamp).toBe(probe && "2026-01-01T00:00:00Z");
  expect(slim.metadata).toEqual({ name: "e", namespace: "n", uid: "u", resourceVersion: "7" });
  expect(slim).not.toHaveProperty("message");
});

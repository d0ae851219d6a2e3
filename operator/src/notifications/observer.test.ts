import type { KubernetesObject } from "@slipway/controller-runtime";
import type { NotificationEvent } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { beforeEach, expect, test } from "vitest";
import { EventRecorder } from "./observer.ts";
import { Subscribers } from "./subscribers.ts";

const ref = { namespace: "slipway-org-acme", name: "pshop" };
let state: string[];
let recorded: string[];
let isDown: boolean;
let subscribed: Map<string, Date>;
let subscribers: Subscribers;
let recorder: EventRecorder<KubernetesObject>;

const eventsOf = (): NotificationEvent[] =>
  state.map((key) => ({
    organizationId: "acme",
    projectId: "pshop",
    type: "run.missed",
    key,
    occurredAt: new Date(),
    data: {},
  }));

beforeEach(async () => {
  state = ["a"];
  recorded = [];
  isDown = false;
  subscribed = new Map([["acme", new Date(1)]]);
  subscribers = new Subscribers(
    async () => [...subscribed].map(([organizationId, changedAt]) => ({ organizationId, changedAt })),
    silentLogger,
  );
  await subscribers.refresh();
  const store = { get: () => (state.includes("deleted") ? undefined : ({} as KubernetesObject)) };
  recorder = new EventRecorder(store, eventsOf, subscribers, async ({ key }) => {
    if (isDown) {
      throw new Error("connection refused");
    }
    recorded.push(key);
  });
});

test("what is observed again is not recorded again, and what is new is", async () => {
  await recorder.reconcile(ref);
  await recorder.reconcile(ref);
  state = ["a", "b"];
  await recorder.reconcile(ref);
  expect(recorded).toEqual(["a", "b"]);
});

test("an organization without webhooks costs the ledger nothing, and is observed once it has one", async () => {
  subscribed = new Map();
  await subscribers.refresh();
  await recorder.reconcile(ref);
  expect(recorded).toEqual([]);
  const changed: string[] = [];
  subscribers.onChange((organizationIds) => changed.push(...organizationIds));
  subscribed = new Map([["acme", new Date(2)]]);
  await subscribers.refresh();
  await subscribers.refresh();
  expect(changed).toEqual(["acme"]);
  await recorder.reconcile(ref);
  expect(recorded).toEqual(["a"]);
});

test("while the ledger is unavailable it is tried again, and nothing is left out", async () => {
  isDown = true;
  await expect(recorder.reconcile(ref)).rejects.toMatchObject({ reason: "LedgerUnavailable" });
  isDown = false;
  await recorder.reconcile(ref);
  expect(recorded).toEqual(["a"]);
});

test("a deleted object is forgotten", async () => {
  await recorder.reconcile(ref);
  state = ["deleted"];
  await recorder.reconcile(ref);
  state = ["a"];
  await recorder.reconcile(ref);
  expect(recorded).toEqual(["a", "a"]);
});

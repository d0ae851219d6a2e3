import { silentLogger, systemClock } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeApiserver } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { type Harness, startHarness, type Widget, widgets } from "../../../../test/kit/runtime/harness.ts";
import { ensureFinalizer, removeFinalizer } from "../apply/finalizers.ts";
import type { EventInput } from "../status/events.ts";
import type { ReconcileContext } from "./controller.ts";
import { RetryableError, TerminalError, WaitingError } from "./errors.ts";
import { type ObjectReconcilerOptions, objectReconciler } from "./object-reconciler.ts";

const WIDGETS = "test.dev/v1/widgets";
const REF = { namespace: "a", name: "w" };

let api: FakeApiserver;
let harness: Harness;
let clock: FakeClock;
let events: string[];

beforeEach(async () => {
  api = await FakeApiserver.start();
  harness = await startHarness(api);
  clock = new FakeClock();
  events = [];
  api.etcd.create(WIDGETS, "a/w", {
    apiVersion: "test.dev/v1",
    kind: "Widget",
    metadata: REF,
    spec: { size: 1 },
  });
  await harness.caughtUp();
});

afterEach(async () => {
  await harness.stop();
  await api.stop();
});

const context = (): ReconcileContext => ({
  signal: new AbortController().signal,
  log: silentLogger,
  clock: systemClock,
});

/** Reconciles once; returns the status that is live then, and how many writes that took. */
async function reconcile(
  work: ObjectReconcilerOptions<Widget>["reconcile"],
  options: Partial<ObjectReconcilerOptions<Widget>> = {},
) {
  const reconciler = objectReconciler<Widget>({
    client: harness.client,
    resource: widgets,
    store: harness.widgets,
    clock,
    fieldManager: "test",
    recorder: {
      event: (_object, _resource, { type, reason }: EventInput) => void events.push(`${type} ${reason}`),
    },
    ...options,
    reconcile: work,
  });
  const before = api.requests.length;
  const error = await reconciler(REF, context()).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  const status = api.etcd.collection(WIDGETS).get("a/w")?.status as Widget["status"];
  return { status, error, writes: api.writes(before).length };
}

const ready = (status: Widget["status"]) => status?.conditions?.find(({ type }) => type === "Ready");

describe("objectReconciler", () => {
  it("writes status once, then nothing", async () => {
    const work: Parameters<typeof reconcile>[0] = async (_object, { status }) => {
      status.size = 1;
      return undefined;
    };
    const first = await reconcile(work);
    expect(first.writes).toBe(1);
    expect(first.status).toMatchObject({ size: 1, observedGeneration: 1 });
    expect(ready(first.status)).toMatchObject({ status: "True", reason: "Ready", observedGeneration: 1 });
    await clock.advance(60_000);
    expect((await reconcile(work)).writes).toBe(0);
    expect(events).toEqual(["Normal Ready"]);
  });

  it("records no event of a new object that is not ready yet, but each change after that", async () => {
    const starting: Parameters<typeof reconcile>[0] = async (_object, { conditions }) => {
      conditions.set({ type: "Ready", status: "False", reason: "Starting", message: "it starts" });
      return undefined;
    };
    expect(ready((await reconcile(starting)).status)).toMatchObject({ reason: "Starting" });
    expect(events).toEqual([]);
    await reconcile(async () => undefined);
    await reconcile(starting);
    expect(events).toEqual(["Normal Ready", "Normal Starting"]);
  });

  it.each([
    ["terminal", new TerminalError("TooBig", "the size is over 5"), "Warning TooBig"],
    ["waiting", new WaitingError("RollingOut", "waiting for pods"), "Normal RollingOut"],
    ["retryable", new RetryableError("Unreachable", "the registry did not answer"), "Warning Unreachable"],
  ])("turns a %s error into condition and event, and throws it on", async (_name, thrown, event) => {
    const { status, error } = await reconcile(() => Promise.reject(thrown));
    expect(error).toBe(thrown);
    expect(ready(status)).toMatchObject({ status: "False", reason: thrown.reason, message: thrown.message });
    expect(events).toEqual([event]);
    await reconcile(() => Promise.reject(thrown));
    expect(events).toEqual([event]);
  });

  it("sets the condition that an error names, too", async () => {
    const { status } = await reconcile(() =>
      Promise.reject(new WaitingError("Pulling", "m", { condition: "ImageReady" })),
    );
    expect(status?.conditions?.map(({ type, status: value }) => [type, value])).toEqual([
      ["Ready", "False"],
      ["ImageReady", "False"],
    ]);
  });

  it("keeps what was set before the error", async () => {
    const { status } = await reconcile(async (_object, draft) => {
      draft.conditions.set({ type: "ImageReady", status: "True", reason: "Pulled" });
      throw new WaitingError("RollingOut", "m");
    });
    expect(status?.conditions?.map(({ type }) => type)).toEqual(["Ready", "ImageReady"]);
  });

  it("reports the message of a defect to the log alone", async () => {
    const { status } = await reconcile(() => Promise.reject(new TypeError("secret in here")));
    expect(ready(status)).toMatchObject({ reason: "InternalError" });
    expect(JSON.stringify(status)).not.toContain("secret");
  });

  it("says nothing of a conflict", async () => {
    await reconcile(async () => undefined);
    const { status, writes } = await reconcile(async () => {
      await harness.client.replace(widgets, { metadata: { ...REF, resourceVersion: "1" } });
      return undefined;
    });
    expect(ready(status)?.status).toBe("True");
    expect(writes).toBe(1);
  });

  it("fails with a conflict rather than overwrite a status written meanwhile", async () => {
    const { status, error } = await reconcile(async () => {
      api.etcd.patch(WIDGETS, "a/w", { status: { size: 7 } }, "status");
      return undefined;
    });
    expect(error).toMatchObject({ status: 409 });
    expect(status).toEqual({ size: 7 });
  });

  it("writes the status after a finalizer that it added itself", async () => {
    const { status, error, writes } = await reconcile(async (object) => {
      await ensureFinalizer(object, "test.dev/f", {
        client: harness.client,
        resource: widgets,
        store: harness.widgets,
      });
      return undefined;
    });
    expect([error, ready(status)?.status, writes]).toEqual([undefined, "True", 2]);
    expect(api.etcd.get(WIDGETS, "a/w").metadata.finalizers).toEqual(["test.dev/f"]);
  });

  it("sets the summary last", async () => {
    const { status } = await reconcile(async () => undefined, {
      summarize: (_object, draft, conditions, outcome) => {
        draft.size = outcome.kind === "success" && conditions.isTrue("Ready") ? 42 : 0;
      },
    });
    expect(status?.size).toBe(42);
  });

  it("passes the wish to come back on", async () => {
    const reconciler = objectReconciler<Widget>({
      client: harness.client,
      resource: widgets,
      store: harness.widgets,
      clock,
      fieldManager: "test",
      recorder: { event: () => {} },
      reconcile: () => Promise.resolve({ requeueAfterMs: 9 }),
    });
    expect(await reconciler(REF, context())).toEqual({ requeueAfterMs: 9 });
  });

  it("reports that the object is deleted", async () => {
    api.etcd.delete(WIDGETS, "a/w");
    await harness.caughtUp();
    const gone: string[] = [];
    const { writes } = await reconcile(() => Promise.reject(new Error("never called")), {
      gone: async (ref) => void gone.push(ref.name),
    });
    expect([gone, writes]).toEqual([["w"], 0]);
  });
});

describe("finalizers", () => {
  const options = () => ({ client: harness.client, resource: widgets, store: harness.widgets });

  it("are added once, and seen immediately", async () => {
    const object = harness.widgets.get("a", "w") as Widget;
    const held = await ensureFinalizer(object, "test.dev/f", options());
    expect(harness.widgets.get("a", "w")?.metadata.finalizers).toEqual(["test.dev/f"]);
    const before = api.requests.length;
    await ensureFinalizer(held, "test.dev/f", options());
    expect(api.requests).toHaveLength(before);
  });

  it("leave those of others alone", async () => {
    api.etcd.patch(WIDGETS, "a/w", { metadata: { finalizers: ["other", "test.dev/f"] } });
    await harness.caughtUp();
    await removeFinalizer(harness.widgets.get("a", "w") as Widget, "test.dev/f", options());
    expect(api.etcd.get(WIDGETS, "a/w").metadata.finalizers).toEqual(["other"]);
  });

  it("are not removed from an object that changed since it was read", async () => {
    const held = await ensureFinalizer(harness.widgets.get("a", "w") as Widget, "test.dev/f", options());
    api.etcd.patch(WIDGETS, "a/w", { spec: { size: 2 } });
    await expect(removeFinalizer(held, "test.dev/f", options())).rejects.toMatchObject({ status: 409 });
  });

  it("release the object, and no status is written then", async () => {
    const held = await ensureFinalizer(harness.widgets.get("a", "w") as Widget, "test.dev/f", options());
    api.etcd.delete(WIDGETS, "a/w");
    await harness.caughtUp();
    const { error } = await reconcile(async (object) => {
      expect(object.metadata.deletionTimestamp).toBeDefined();
      await removeFinalizer(object, "test.dev/f", options());
      return undefined;
    });
    expect(error).toBeUndefined();
    expect(api.etcd.collection(WIDGETS).size).toBe(0);
    await removeFinalizer(held, "test.dev/f", options());
    await harness.caughtUp();
    expect(harness.widgets.size).toBe(0);
  });
});

import { silentLogger } from "@slipway/process";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { Store } from "../cache/store.ts";
import type { KubernetesObject, ObjectRef } from "../client/types.ts";
import { createRuntimeMetrics } from "../manager/runtime-metrics.ts";
import { Controller, type ControllerOptions, type ReconcileContext } from "./controller.ts";
import { RetryableError, TerminalError, WaitingError } from "./errors.ts";
import { watchObjects } from "./sources.ts";

let clock: FakeClock;
let registry: Registry;
let abort: AbortController;
let running: Promise<void> | undefined;
let mayAct: boolean;

beforeEach(() => {
  clock = new FakeClock();
  registry = new Registry();
  abort = new AbortController();
  mayAct = true;
});

afterEach(async () => {
  abort.abort();
  await clock.advance(10_000);
  await running;
});

function start(
  reconcile: (name: string, context: ReconcileContext) => Promise<unknown> | unknown,
  options: Partial<ControllerOptions> = {},
): Controller {
  const controller = new Controller(
    {
      name: "test",
      sources: [],
      backoff: { baseMs: 100, maxMs: 10_000 },
      ...options,
      reconcile: async (ref: ObjectRef, context) =>
        (await reconcile(ref.name, context)) as { requeueAfterMs?: number } | undefined,
    },
    {
      clock,
      random: () => 0,
      log: silentLogger,
      metrics: createRuntimeMetrics(registry),
      mayAct: () => mayAct,
    },
  );
  running = controller.run(abort.signal);
  return controller;
}

const metric = async (text: string) =>
  (await registry.metrics()).split("\n").find((line) => line.startsWith(text));

describe("Controller", () => {
  it("isolates a key that always fails", async () => {
    const done: string[] = [];
    const controller = start((name) => {
      if (name === "poison") {
        throw new TypeError("defect");
      }
      done.push(name);
    });
    for (const name of ["poison", "a", "b", "c"]) {
      controller.enqueue({ name });
    }
    await clock.advance(1_000);
    expect(done).toEqual(["a", "b", "c"]);
    expect(controller.queue.failures("poison")).toBeGreaterThanOrEqual(3);
    expect(await metric("controller_runtime_reconcile_panics_total")).toMatch(/ [1-9]/);
    controller.enqueue({ name: "d" });
    await clock.advance(0);
    expect(done).toContain("d");
  });

  it("never reconciles one key twice concurrently, but several keys", async () => {
    let now = 0;
    let most = 0;
    let worst = 0;
    const same = new Map<string, number>();
    const controller = start(
      async (name) => {
        now += 1;
        most = Math.max(most, now);
        same.set(name, (same.get(name) ?? 0) + 1);
        worst = Math.max(worst, same.get(name) ?? 0);
        await new Promise<void>((resolve) => clock.setTimeout(resolve, 10));
        same.set(name, 0);
        now -= 1;
      },
      { workers: 3 },
    );
    for (let round = 0; round < 5; round += 1) {
      for (const name of ["a", "b", "c", "d"]) {
        controller.enqueue({ name });
      }
      await clock.advance(4);
    }
    await clock.advance(100);
    expect(most).toBe(3);
    expect(worst).toBe(1);
  });

  it.each([
    [
      "waits without counting an error",
      () => new WaitingError("W", "m", { requeueAfterMs: 50 }),
      50,
      "requeue_after",
    ],
    ["retries with backoff", () => new RetryableError("R", "m"), 100, "error"],
  ])("%s", async (_name, error, ms, result) => {
    let runs = 0;
    const controller = start(() => {
      runs += 1;
      throw error();
    });
    controller.enqueue({ name: "a" });
    await clock.advance(ms - 1);
    expect(runs).toBe(1);
    await clock.advance(1);
    expect(runs).toBe(2);
    expect(await metric(`controller_runtime_reconcile_total{controller="test",result="${result}"}`)).toMatch(
      / 2$/,
    );
  });

  it("reconciles what changed while nobody did before all that is there already", async () => {
    const store = new Store<KubernetesObject & { status?: { observedGeneration: number } }>();
    const object = (name: string, generation: number, more: object = {}) => ({
      metadata: { name, namespace: "n", uid: name, resourceVersion: "1", generation, ...more },
      status: { observedGeneration: 1 },
    });
    const changed = object("changed", 2);
    const deleted = object("deleted", 1, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    store.replace([object("a", 1), object("b", 1), changed, object("c", 1), deleted], "1");
    const order: string[] = [];
    start((name) => void order.push(name), { sources: [watchObjects(store)], workers: 1 });
    await clock.advance(1);
    expect(order).toEqual(["changed", "deleted", "a", "b", "c"]);
  });

  it("does not retry what is terminal", async () => {
    let runs = 0;
    const controller = start(() => {
      runs += 1;
      throw new TerminalError("T", "m");
    });
    controller.enqueue({ name: "a" });
    await clock.advance(100_000);
    expect(runs).toBe(1);
    expect(await metric("controller_runtime_terminal_reconcile_errors_total")).toMatch(/ 1$/);
  });

  it("comes back when the reconciler asks", async () => {
    let runs = 0;
    const controller = start(() => {
      runs += 1;
      return { requeueAfterMs: 500 };
    });
    controller.enqueue({ name: "a" });
    await clock.advance(1_100);
    expect(runs).toBe(3);
  });

  it("aborts a reconcile at its time limit", async () => {
    const controller = start(
      (_name, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
        ),
      { timeoutMs: 1_000 },
    );
    controller.enqueue({ name: "a" });
    await clock.advance(1_000);
    expect(controller.queue.failures("a")).toBe(1);
    expect(await metric("controller_runtime_reconcile_timeouts_total")).toMatch(/ 1$/);
  });

  it("frees the worker of a reconcile that ignores its signal, but keeps its key", async () => {
    let release: () => void = () => {};
    const runs: string[] = [];
    const controller = start(
      (name) => {
        runs.push(name);
        return name === "stuck" ? new Promise<void>((resolve) => (release = resolve)) : undefined;
      },
      { timeoutMs: 1_000, workers: 1 },
    );
    controller.enqueue({ name: "stuck" });
    controller.enqueue({ name: "a" });
    await clock.advance(2_000);
    expect(runs).toEqual(["stuck"]);
    await clock.advance(1_000);
    expect(runs).toEqual(["stuck", "a"]);
    controller.enqueue({ name: "stuck" });
    await clock.advance(10_000);
    expect(runs).toEqual(["stuck", "a"]);
    release();
    await clock.advance(0);
    expect(runs).toEqual(["stuck", "a", "stuck"]);
    release();
  });

  it("does nothing while it may not act, and catches up later", async () => {
    const runs: string[] = [];
    mayAct = false;
    const controller = start((name) => void runs.push(name));
    controller.enqueue({ name: "a" });
    await clock.advance(5_000);
    expect(runs).toEqual([]);
    mayAct = true;
    await clock.advance(1_000);
    expect(runs).toEqual(["a"]);
  });

  it("waits on stop until what is under way has ended", async () => {
    let ended = false;
    const controller = start(async () => {
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 100));
      ended = true;
    });
    controller.enqueue({ name: "a" });
    await clock.advance(10);
    abort.abort();
    await clock.advance(90);
    await running;
    expect(ended).toBe(true);
  });
});

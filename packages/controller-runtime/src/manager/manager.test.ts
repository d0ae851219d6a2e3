import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeApiserver } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import type { Widget } from "../../../../test/kit/runtime/harness.ts";
import { type WidgetOperatorOptions, widgetOperator } from "../../../../test/kit/runtime/widget-operator.ts";
import { resources } from "../client/resources.ts";
import type { Manager } from "./manager.ts";
import { shardOf } from "./shards.ts";

const WIDGETS = "test.dev/v1/widgets";
const CONFIG_MAPS = "v1/configmaps";
const ELECTION = {
  namespace: "system",
  name: "lock",
  leaseDurationMs: 2_400,
  renewDeadlineMs: 1_600,
  retryPeriodMs: 100,
};

let api: FakeApiserver;
let stops: (() => Promise<void>)[];

beforeEach(async () => {
  api = await FakeApiserver.start();
  stops = [];
});

afterEach(async () => {
  for (const stop of stops) {
    await stop();
  }
  await api.stop();
});

function start({
  prepare,
  ...options
}: Partial<WidgetOperatorOptions> & { prepare?: (manager: Manager) => void } = {}): {
  manager: Manager;
  stop: () => Promise<void>;
} {
  const manager = widgetOperator({
    cluster: { url: api.url },
    identity: "one",
    children: [resources.configMaps],
    desired: (widget) => [
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { namespace: "a", name: widget.metadata.name },
        data: { size: String(widget.spec?.size) },
      } as Widget,
    ],
    ...options,
    log: silentLogger,
  });
  prepare?.(manager);
  const abort = new AbortController();
  const running = manager.run(abort.signal);
  running.catch(() => {});
  const stop = async () => {
    abort.abort();
    await running;
  };
  stops.push(() => stop().catch(() => {}));
  return { manager, stop };
}

function create(name: string, spec: Widget["spec"] = { size: 1 }): void {
  api.etcd.create(WIDGETS, `a/${name}`, {
    apiVersion: "test.dev/v1",
    kind: "Widget",
    metadata: { namespace: "a", name },
    spec,
  });
}

const readyOf = (name: string) =>
  (api.etcd.collection(WIDGETS).get(`a/${name}`)?.status as Widget["status"])?.conditions?.[0];
const isReady = (name: string) => readyOf(name)?.status === "True";
const quiet = () => new Promise((resolve) => setTimeout(resolve, 400));

describe("Manager", () => {
  it("reconciles objects, repairs them, and then writes nothing", async () => {
    for (let index = 0; index < 20; index += 1) {
      create(`w-${index}`);
    }
    start();
    await eventually("all ready", () => [...Array(20).keys()].every((index) => isReady(`w-${index}`)));
    await quiet();
    const before = api.requests.length;
    await quiet();
    expect(api.writes(before)).toEqual([]);
    api.etcd.delete(CONFIG_MAPS, "a/w-7");
    await eventually("the deleted child back", () => api.etcd.collection(CONFIG_MAPS).has("a/w-7"));
    await quiet();
    expect(api.writes(before)).toHaveLength(1);
  });

  it("acts, and is ready, only once every startup check has succeeded", async () => {
    create("w");
    let open: () => void = () => {};
    const { manager } = start({ startupCheck: () => new Promise((resolve) => (open = resolve)) });
    await eventually("listening", () => manager.port !== undefined);
    const ready = async () => (await fetch(`http://127.0.0.1:${manager.port}/readyz`)).status;
    await quiet();
    expect(await ready()).not.toBe(200);
    expect((await fetch(`http://127.0.0.1:${manager.port}/healthz`)).status).toBe(200);
    expect(api.writes()).toEqual([]);
    open();
    await eventually("ready", () => isReady("w"));
    expect(await ready()).toBe(200);
  });

  it("ends when a startup check throws", async () => {
    const { stop } = start({ startupCheck: () => Promise.reject(new Error("wrong setting")) });
    await expect(stop()).rejects.toThrow("wrong setting");
  });

  it("writes nothing after a restart", async () => {
    for (let index = 0; index < 20; index += 1) {
      create(`w-${index}`);
    }
    const first = start();
    await eventually("all ready", () => [...Array(20).keys()].every((index) => isReady(`w-${index}`)));
    await quiet();
    await first.stop();
    const before = api.requests.length;
    const { manager } = start({ identity: "two" });
    await eventually("20 reconciles", async () => {
      const text = await manager.registry.metrics();
      return / 20$/m.test(
        text.match(/controller_runtime_reconcile_total{controller="widget",result="success"}.*/)?.[0] ?? "",
      );
    });
    await quiet();
    expect(api.writes(before)).toEqual([]);
  });

  it("deletes in order: children first, then the object", async () => {
    create("w");
    start();
    await eventually("ready", () => isReady("w"));
    api.etcd.delete(WIDGETS, "a/w");
    await eventually(
      "all gone",
      () => api.etcd.collection(WIDGETS).size + api.etcd.collection(CONFIG_MAPS).size === 0,
    );
  });

  it("isolates a broken object", async () => {
    create("broken", { broken: "no such plan" });
    create("poison");
    for (let index = 0; index < 5; index += 1) {
      create(`w-${index}`);
    }
    start({
      before: (widget) => {
        if (widget.metadata.name === "poison") {
          throw new TypeError("defect");
        }
      },
    });
    await eventually("the others ready", () => [...Array(5).keys()].every((index) => isReady(`w-${index}`)));
    await eventually("both to be reported", () => readyOf("broken") && readyOf("poison"));
    expect(readyOf("broken")).toMatchObject({ status: "False", reason: "Broken", message: "no such plan" });
    expect(readyOf("poison")).toMatchObject({ status: "False", reason: "InternalError" });
  });

  it("serves metrics, health and readiness", async () => {
    create("w");
    const { manager } = start({ leaderElection: ELECTION });
    await eventually("ready", () => isReady("w"));
    const get = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${manager.port}${path}`);
      return { status: response.status, text: await response.text() };
    };
    expect(await get("/healthz")).toMatchObject({ status: 200 });
    expect(await get("/readyz")).toMatchObject({ status: 200, text: "[+]stores ok\nok\n" });
    manager.addReadyCheck("ledger", () => false);
    expect(await get("/readyz")).toMatchObject({
      status: 503,
      text: "[+]stores ok\n[-]ledger failed\nfailed\n",
    });
    expect(await get("/nothing")).toMatchObject({ status: 404 });
    const { text } = await get("/metrics");
    for (const name of [
      'leader_election_master_status{name="lock"} 1',
      "controller_runtime_reconcile_time_seconds_bucket",
      "controller_runtime_max_concurrent_reconciles",
      "workqueue_depth",
      "rest_client_requests_total",
      "reflector_lists_total",
    ]) {
      expect(text).toContain(name);
    }
  });

  it("is not ready before the stores are filled", async () => {
    api.failNext(({ path, method }) => method === "GET" && path.endsWith("/configmaps"), {
      status: 500,
      times: 1_000,
    });
    const { manager } = start();
    await eventually("listening", () => manager.port);
    const response = await fetch(`http://127.0.0.1:${manager.port}/readyz`);
    expect([response.status, await response.text()]).toEqual([503, "[-]stores failed\nfailed\n"]);
  });

  it("reconciles on the leader alone, and hands over on an orderly stop", async () => {
    const actors = new Set<string>();
    const before = (_widget: Widget, identity: string) => void actors.add(identity);
    create("w-1");
    const one = start({ leaderElection: ELECTION, before });
    await eventually("ready", () => isReady("w-1"));
    start({ leaderElection: ELECTION, before, identity: "two" });
    create("w-2");
    await eventually("ready", () => isReady("w-2"));
    await quiet();
    expect([...actors]).toEqual(["one"]);
    const stopped = performance.now();
    await one.stop();
    create("w-3");
    await eventually("ready", () => isReady("w-3"));
    expect(performance.now() - stopped).toBeLessThan(800);
    expect([...actors]).toEqual(["one", "two"]);
  });

  it("reconciles the namespaces of its own shard alone, and what belongs to the platform in the first one", async () => {
    const seen: string[] = [];
    for (const namespace of ["a", "b", "c", "d"]) {
      const key = `${namespace}/w`;
      api.etcd.create(WIDGETS, key, {
        apiVersion: "test.dev/v1",
        kind: "Widget",
        metadata: { namespace, name: "w" },
        spec: { size: 1 },
      });
    }
    const ran: string[] = [];
    for (const index of [0, 1]) {
      const shard = { index, count: 2, annotation: "test.dev/shards" };
      start({
        leaderElection: { namespace: "system", name: "lock", shard },
        identity: `shard ${index}`,
        desired: () => [],
        before: ({ metadata }, identity) => void seen.push(`${metadata.namespace}: ${identity}`),
        prepare: (manager) => {
          const runnable = (name: string) => async () => void ran.push(`${name} in ${index}`);
          manager.addRunnable({ name: "once", run: runnable("once") });
          manager.addRunnable({ name: "each", everyShard: true, run: runnable("each") });
        },
      });
    }
    await eventually("all reconciled", () => new Set(seen).size === 4 && ran.length === 3);
    await quiet();
    const own = ["a", "b", "c", "d"].map((namespace) => `${namespace}: shard ${shardOf(namespace, 2)}`);
    expect([...new Set(seen)].sort()).toEqual(own);
    expect(new Set(own.map((one) => one.at(-1))).size).toBe(2);
    expect(ran.sort()).toEqual(["each in 0", "each in 1", "once in 0"]);
  });

  it("ends the process when it loses the lease", async () => {
    const codes: number[] = [];
    create("w");
    start({ leaderElection: ELECTION, exit: (code) => void codes.push(code) });
    await eventually("ready", () => isReady("w"));
    api.etcd.patch("coordination.k8s.io/v1/leases", "system/lock", { spec: { holderIdentity: "thief" } });
    await eventually("the exit", () => codes.length > 0);
    expect(codes).toEqual([1]);
  });

  it("ends with the error of a runnable that failed", async () => {
    const { manager } = start();
    await eventually("listening", () => manager.port);
    const other = widgetOperator({
      cluster: { url: api.url },
      identity: "two",
      children: [],
      desired: () => [],
      log: silentLogger,
    });
    other.addRunnable({ name: "sampler", run: () => Promise.reject(new Error("sampler broke")) });
    await expect(other.run(new AbortController().signal)).rejects.toThrow("sampler broke");
  });
});

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Logger, silentLogger } from "@slipway/process";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startApiserver, type TestApiserver } from "../../../hack/cluster/apiserver.ts";
import { readVerbs } from "../../../hack/cluster/control-plane.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { childrenOfEveryKind } from "../../../test/kit/runtime/children-of-every-kind.ts";
import { type Widget, widgets } from "../../../test/kit/runtime/harness.ts";
import {
  childResources,
  type WidgetOperatorOptions,
  widgetDefinition,
  widgetOperator,
} from "../../../test/kit/runtime/widget-operator.ts";
import { KubeClient } from "./client/client.ts";
import { loadKubeConfig } from "./client/kube-config.ts";
import { resources } from "./client/resources.ts";
import type { Resource } from "./client/types.ts";
import type { Manager } from "./manager/manager.ts";
import { shardOf } from "./manager/shards.ts";

let api: TestApiserver;
let client: KubeClient;
let namespace: string;
let counter = 0;
let stops: (() => Promise<void>)[];

beforeAll(async () => {
  api = await startApiserver();
  client = KubeClient.fromConfig(loadKubeConfig({ file: api.kubeconfig }));
  await client.create(resources.customResourceDefinitions, widgetDefinition);
  await eventually(
    "widgets served",
    () =>
      client.list(widgets).then(
        () => true,
        () => false,
      ),
    20_000,
  );
});

afterAll(async () => {
  await client.close();
  await api.stop();
});

beforeEach(async () => {
  stops = [];
  counter += 1;
  namespace = `test-${counter}`;
  await client.create(resources.namespaces, { metadata: { name: namespace } });
});

afterEach(async () => {
  for (const stop of stops) {
    await stop();
  }
  for (const widget of await client.listAll<Widget>(widgets)) {
    await client.patch(widgets, widget.metadata as { name: string }, { metadata: { finalizers: null } });
    await client.delete(widgets, { namespace: widget.metadata.namespace, name: widget.metadata.name });
  }
});

function start({
  prepare,
  ...options
}: Partial<WidgetOperatorOptions> & { log?: Logger; prepare?: (manager: Manager) => void } = {}): {
  manager: Manager;
  stop: () => Promise<void>;
} {
  const manager = widgetOperator({
    cluster: loadKubeConfig({ file: api.kubeconfig }),
    identity: "one",
    children: childResources,
    desired: childrenOfEveryKind,
    log: silentLogger,
    ...options,
  });
  prepare?.(manager);
  const abort = new AbortController();
  const running = manager.run(abort.signal);
  const stop = async () => {
    abort.abort();
    await running;
  };
  stops.push(stop);
  return { manager, stop };
}

const create = (name: string, spec: Widget["spec"] = { size: 1 }) =>
  client.create<Widget>(widgets, { metadata: { namespace, name }, spec });
const get = (name: string) => client.get<Widget>(widgets, { namespace, name });

async function readyCount(): Promise<number> {
  const { items } = await client.list<Widget>(widgets, { namespace });
  return items.filter((widget) => widget.status?.conditions?.[0]?.status === "True").length;
}

/** The operator's writes so far, its leases and events aside, as the apiserver's audit log has them. */
async function operatorWrites(): Promise<string[]> {
  const lines = (await readFile(api.auditLog, "utf8")).trim().split("\n");
  return lines
    .map((line) => JSON.parse(line) as Audit)
    .filter(({ userAgent, verb }) => userAgent === "test.dev/operator" && !readVerbs.includes(verb))
    .filter(({ objectRef }) => !["leases", "events"].includes(objectRef?.resource ?? ""))
    .map(
      ({ verb, objectRef }) =>
        `${verb} ${objectRef?.resource}/${objectRef?.name} ${objectRef?.subresource ?? ""}`,
    );
}

interface Audit {
  verb: string;
  userAgent: string;
  objectRef?: { resource?: string; name?: string; subresource?: string };
}

/** Waits until the operator has written nothing for a while; returns how many writes there are. */
async function settled(): Promise<number> {
  let before = -1;
  for (let now = (await operatorWrites()).length; now !== before; now = (await operatorWrites()).length) {
    before = now;
    await new Promise((resolve) => setTimeout(resolve, 1_500));
  }
  return before;
}

const reconciles = async ({ registry }: Manager) => {
  const text = await registry.metrics();
  return Number(
    text.match(/controller_runtime_reconcile_total{controller="widget",result="success"} (\d+)/)?.[1] ?? 0,
  );
};

const collectionSize = async (resource: Resource) =>
  (await client.list(resource, { namespace })).items.filter(
    (item) => item.metadata?.annotations?.["test.dev/applied-by"],
  ).length;

describe("a settled platform", () => {
  it("writes nothing, of any kind of child, also after a restart", async () => {
    const one = start();
    for (let index = 0; index < 5; index += 1) {
      await create(`w-${index}`);
    }
    await eventually("all ready", async () => (await readyCount()) === 5, 90_000);
    const before = await settled();
    expect(before).toBeGreaterThanOrEqual(5 * childrenOfEveryKind(await get("w-0")).length);
    // A change of the object that changes nothing of what is desired makes every child be looked at again.
    const seen = await reconciles(one.manager);
    await client.patch(widgets, { namespace, name: "w-0" }, { metadata: { labels: { touched: "yes" } } });
    await eventually("looked at", async () => (await reconciles(one.manager)) > seen);
    expect((await operatorWrites()).slice(before)).toEqual([]);
    await one.stop();
    const two = start({ identity: "two" });
    await eventually("five reconciles", async () => (await reconciles(two.manager)) >= 5, 90_000);
    await settled();
    expect((await operatorWrites()).slice(before)).toEqual([]);
  });

  it("restores children that were edited and deleted manually", async () => {
    start();
    await create("w");
    await eventually("ready", async () => (await readyCount()) === 1, 90_000);
    const ref = { namespace, name: "w" };
    await client.patch(resources.deployments, ref, { spec: { replicas: 7 } });
    await eventually("replicas healed", async () => {
      const deployment = await client.get<Widget>(resources.deployments, ref);
      return (deployment.spec as { replicas: number }).replicas === 1;
    });
    const open = { spec: { ingress: [{}], egress: [{}] } };
    await client.patch(resources.networkPolicies, ref, open);
    await eventually("policy closed again", async () => {
      const policy = await client.get<Widget>(resources.networkPolicies, ref);
      return (
        ((policy.spec as { egress: object[] }).egress[1] as { to?: object[] } | undefined)?.to?.length === 1
      );
    });
    await client.delete(resources.services, ref);
    await eventually("service back", () => client.getOrUndefined(resources.services, ref));
    await client.patch(resources.secrets, ref, { data: { password: "AAAA" } });
    await eventually("secret healed", async () => {
      const secret = await client.get<Widget & { data: Record<string, string> }>(resources.secrets, ref);
      return Buffer.from(secret.data.password ?? "", "base64").toString() === "p-1";
    });
    const before = await settled();
    expect((await operatorWrites()).length).toBe(before);
  });

  it("removes from children of every kind a field that they were created with", async () => {
    const desired = (widget: Widget) =>
      childrenOfEveryKind(widget).map((child) => {
        const labels: Record<string, string> = widget.spec?.size === 1 ? { once: "yes" } : {};
        return {
          ...child,
          metadata: { ...child.metadata, labels: { ...child.metadata?.labels, ...labels } },
        };
      });
    start({ desired });
    await create("w");
    await eventually("ready", async () => (await readyCount()) === 1, 90_000);
    const children = async (labelSelector: string) => {
      const lists = childResources.map((resource) => client.list(resource, { namespace, labelSelector }));
      return (await Promise.all(lists)).flatMap(({ items }) => items);
    };
    const created = await children("once=yes");
    expect(created).toHaveLength(childrenOfEveryKind(await get("w")).length);
    const others = { metadata: { labels: { others: "kept" } } };
    await client.patch(resources.configMaps, { namespace, name: "w" }, others);
    await client.patch(widgets, { namespace, name: "w" }, { spec: { size: 2 } });
    await eventually("the label removed", async () => (await children("once=yes")).length === 0);
    expect(await children("others=kept")).toHaveLength(1);
    const marks = (await children("test.dev/widget=w")).map(
      ({ metadata }) => metadata?.annotations?.["test.dev/created-by"],
    );
    expect(marks).toEqual(created.map(() => undefined));
  });

  it("prunes what is no longer desired and deletes everything at the end", async () => {
    start({ desired: (widget) => childrenOfEveryKind(widget).slice(0, widget.spec?.size === 2 ? 3 : 14) });
    await create("w");
    await eventually("ready", async () => (await readyCount()) === 1, 90_000);
    await client.patch(widgets, { namespace, name: "w" }, { spec: { size: 2 } });
    await eventually("pruned", async () => (await collectionSize(resources.deployments)) === 0);
    expect(await collectionSize(resources.configMaps)).toBe(1);
    // No controller is here that lets a claim go.
    const claim = { namespace, name: "w" };
    await client.patch(resources.persistentVolumeClaims, claim, { metadata: { finalizers: null } });
    await client.delete(widgets, { namespace, name: "w" });
    await eventually(
      "widget gone",
      async () => !(await client.getOrUndefined(widgets, { namespace, name: "w" })),
    );
    for (const resource of childResources) {
      expect(await collectionSize(resource)).toBe(0);
    }
  });
});

describe("under trouble", () => {
  it("continues after the apiserver was killed and restarted, until nothing changes any more", async () => {
    start();
    await create("w-0");
    await eventually("ready", async () => (await readyCount()) === 1, 90_000);
    await api.kill();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await api.restart();
    await create("w-1");
    await eventually("both ready", async () => (await readyCount()) === 2, 60_000);
    await settled();
  });

  it("isolates a key that always fails and a handler that throws", async () => {
    const one = start({
      before: (widget) => {
        if (widget.metadata.name === "poison") {
          throw new TypeError("defect");
        }
      },
      prepare: (manager) =>
        manager.store(resources.configMaps).subscribe(() => {
          throw new Error("handler");
        }),
    });
    await create("poison");
    await create("terminal", { broken: "no such plan" });
    for (let index = 0; index < 5; index += 1) {
      await create(`w-${index}`);
    }
    await eventually("five ready", async () => (await readyCount()) === 5, 90_000);
    const threw = (await one.manager.registry.metrics()).match(
      /controller_runtime_event_handler_errors_total{.*} (\d+)/,
    );
    expect(Number(threw?.[1])).toBeGreaterThanOrEqual(5);
    expect((await get("poison")).status?.conditions?.[0]).toMatchObject({ reason: "InternalError" });
    expect((await get("terminal")).status?.conditions?.[0]).toMatchObject({ reason: "Broken" });
  });

  it("comes through a storm of conflicts", async () => {
    start();
    for (let index = 0; index < 5; index += 1) {
      await create(`w-${index}`);
    }
    // Another client changes the objects and their statuses as fast as it can, right under the operator.
    const end = performance.now() + 4_000;
    const storm = Array.from({ length: 5 }, async (_, index) => {
      const ref = { namespace, name: `w-${index}` };
      for (let turn = 0; performance.now() < end; turn += 1) {
        await client.patch(widgets, ref, { metadata: { labels: { turn: String(turn) } } });
        await client.patch(widgets, ref, { status: { noise: turn } }, { subresource: "status" });
      }
    });
    await Promise.all(storm);
    for (let index = 0; index < 5; index += 1) {
      await client.patch(widgets, { namespace, name: `w-${index}` }, { spec: { size: 3 } });
    }
    await eventually(
      "all at size 3",
      async () => {
        const { items } = await client.list<Widget>(widgets, { namespace });
        return items.every(({ status }) => status?.size === 3 && status.conditions?.[0]?.status === "True");
      },
      30_000,
    );
    await settled();
  });

  it("shows events in events.k8s.io/v1", async () => {
    start();
    await create("w");
    await eventually("an event", async () => {
      const { items } = await client.list(resources.events, { namespace });
      return items.some((event) => (event as { reason?: string }).reason === "Ready");
    });
  });
});

describe("two replicas", () => {
  const replicas = new Map<string, ChildProcess>();

  const logOf = (name: string) => join(api.dir, `${name}.log`);

  function launch(name: string, leaseSeconds: number): ChildProcess {
    const log = openSync(logOf(name), "w");
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, "../../../test/kit/runtime/replica.ts")],
      {
        env: {
          ...process.env,
          KUBECONFIG: api.kubeconfig,
          POD_NAME: name,
          LEASE_SECONDS: String(leaseSeconds),
        },
        stdio: ["ignore", log, log],
      },
    );
    replicas.set(name, child);
    return child;
  }

  async function end(name: string, signal: NodeJS.Signals): Promise<void> {
    const child = replicas.get(name);
    if (!child || child.exitCode !== null || child.signalCode !== null) {
      return;
    }
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }

  afterEach(async () => {
    for (const name of replicas.keys()) {
      await end(name, "SIGKILL");
    }
    replicas.clear();
    await client.delete(resources.leases, { namespace: "default", name: "widget-operator" });
  });

  const holder = async () => {
    const lease = await client.getOrUndefined(resources.leases, {
      namespace: "default",
      name: "widget-operator",
    });
    return (lease as { spec?: { holderIdentity?: string } } | undefined)?.spec?.holderIdentity ?? "";
  };

  it("reconcile every object when the leader is killed in the middle", async () => {
    launch("replica-a", 3);
    launch("replica-b", 3);
    const first = await eventually("a leader", holder, 90_000);
    const creating = Promise.all(Array.from({ length: 30 }, (_, index) => create(`w-${index}`)));
    await eventually("some ready", async () => (await readyCount()) >= 3, 90_000);
    await end(first, "SIGKILL");
    await creating;
    await eventually("all ready", async () => (await readyCount()) === 30, 90_000);
    expect(await holder()).not.toBe(first);
    for (const resource of childResources) {
      expect(await collectionSize(resource)).toBe(30);
    }
    const before = await settled();
    expect((await operatorWrites()).length).toBe(before);
  });

  it("hand over immediately on an orderly stop", async () => {
    const leaseSeconds = 30;
    launch("replica-a", leaseSeconds);
    const first = await eventually("a leader", holder, 90_000);
    launch("replica-b", leaseSeconds);
    await eventually(
      "the other to wait",
      async () => (await readFile(logOf("replica-b"), "utf8")).includes("stores are filled"),
      30_000,
    );
    await end(first, "SIGTERM");
    // Long before it could know by itself that nobody renews the lease any more.
    await eventually("the other leads", async () => (await holder()) === "replica-b", 10_000);
  });
});

describe("shards", () => {
  const HAND_OVERS = 20;

  it(`reconcile no object twice at once over ${HAND_OVERS} hand-overs, nor while their number changes`, async () => {
    const namespaces = Array.from({ length: 6 }, (_, index) => `shard-${index}`);
    const refs = namespaces.map((namespace) => ({ namespace, name: "w" }));
    for (const name of namespaces) {
      await client.create(resources.namespaces, { metadata: { name } });
      await client.create<Widget>(widgets, { metadata: { namespace: name, name: "w" }, spec: { size: 1 } });
    }
    const working = new Map<string, string>();
    const overlaps: string[] = [];
    const actors = new Map<string, Set<string>>();
    const before = async ({ metadata: { namespace = "" } }: Widget, identity: string) => {
      const other = working.get(namespace);
      if (other !== undefined && other !== identity) {
        overlaps.push(`${namespace}: ${other} and ${identity}`);
      }
      working.set(namespace, identity);
      actors.set(namespace, (actors.get(namespace) ?? new Set()).add(identity));
      // Long enough for another to come in between.
      await new Promise((resolve) => setTimeout(resolve, 30));
      working.delete(namespace);
    };
    let started = 0;
    const replica = (index: number, count: number) => {
      started += 1;
      const shard = { index, count, annotation: "test.dev/shards" };
      const times = { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 100 };
      const leaderElection = { namespace: "default", name: "sharded", shard, ...times };
      const identity = `${index} of ${count}, ${started}`;
      return start({ identity, leaderElection, before, desired: () => [], children: [] });
    };
    let size = 1;
    const change = async () => {
      size += 1;
      await Promise.all(refs.map((ref) => client.patch(widgets, ref, { spec: { size } })));
    };
    const applied = () =>
      eventually(
        `size ${size}`,
        async () => {
          const { items } = await client.list<Widget>(widgets);
          const own = items.filter(({ metadata }) => metadata.namespace?.startsWith("shard-"));
          return own.every(({ status }) => status?.size === size);
        },
        30_000,
      );
    const shards = [0, 1].map((index) => [replica(index, 2), replica(index, 2)]);
    await applied();
    for (let turn = 0; turn < HAND_OVERS; turn += 1) {
      const index = turn % 2;
      await change();
      // The elder of the two leads, or has led before.
      await shards[index]?.shift()?.stop();
      shards[index]?.push(replica(index, 2));
      await applied();
    }
    for (const namespace of namespaces) {
      const index = shardOf(namespace, 2);
      expect(
        [...(actors.get(namespace) ?? [])].filter((actor) => !actor.startsWith(`${index} of 2`)),
      ).toEqual([]);
      expect(actors.get(namespace)?.size).toBeGreaterThan(HAND_OVERS / 4);
    }
    const three = [0, 1, 2].map((index) => replica(index, 3));
    expect(namespaces.map((namespace) => shardOf(namespace, 3))).toContain(2);
    for (let turn = 0; turn < 5; turn += 1) {
      // Long enough for the third shard, whose Lease nobody holds, to be led.
      await new Promise((resolve) => setTimeout(resolve, 400));
      await change();
      await applied();
    }
    await Promise.all(shards.flat().map((one) => one.stop()));
    await change();
    await applied();
    await Promise.all(three.slice(0, 2).map((one) => one.stop()));
    expect(overlaps).toEqual([]);
  }, 240_000);
});

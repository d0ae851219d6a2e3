/**
 * `npm run bench:shards`: how much sooner two shards of the operator than one apply many projects at once, where the operator is what takes long: each
 * process may use a part of a processor only, as a container with a limit. What they took of etcd and kube-apiserver shows when these are the limit.
 * As root, for control groups. Flags: --objects 200, --shards 1,2, --processors 0.25 (of each operator).
 */
import { parseArgs } from "node:util";
import {
  dropManagedFields,
  type KubernetesObject,
  Reflector,
  resources,
  Store,
} from "@slipway/controller-runtime";
import { organizationNamespace } from "@slipway/crds";
import { end } from "../../../hack/cluster/apiserver.ts";
import { forEachConcurrently } from "../../../hack/lib/concurrently.ts";
import { joinControlGroup, limitProcessors, removeControlGroup } from "../../../hack/lib/control-group.ts";
import { freePorts } from "../../../hack/lib/ports.ts";
import { waitFor } from "../../../hack/lib/wait.ts";
import { shardOf } from "../../../packages/controller-runtime/src/manager/shards.ts";
import { cpuSeconds } from "../load.ts";
import { NAME_PREFIX, slipway } from "./contenders.ts";
import { startPlatform } from "./platform.ts";

const { values: flags } = parseArgs({
  options: {
    objects: { type: "string", default: "200" },
    shards: { type: "string", default: "1,2" },
    processors: { type: "string", default: "0.25" },
  },
});
const objects = Number(flags.objects);
const cleanups: (() => unknown)[] = [];
const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`);

/** Organizations of which every shard of two has as many. */
const organizations = [0, 1].flatMap((shard) =>
  Array.from({ length: 100 }, (_, index) => `bench${index}`)
    .filter((id) => shardOf(organizationNamespace(id), 2) === shard)
    .slice(0, 4),
);

const platform = await startPlatform(cleanups);
const { cluster, kube } = platform;
const contender = slipway(platform, organizations);

/** Starts a process of each shard; resolves once all organizations have their namespaces. */
async function startShards(count: number): Promise<{ pids: number[]; stop(): Promise<void> }> {
  const stops: (() => Promise<void>)[] = [];
  const pids: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const [metricsPort = 0] = await freePorts(1);
    const env = { SLIPWAY_SHARD: String(index), SLIPWAY_SHARDS: String(count) };
    const child = await contender.start({ metricsPort, env });
    cleanups.push(() => child.kill("SIGKILL"));
    const group = `slipway-bench-${process.pid}-${count}-${index}`;
    stops.push(async () => {
      await end(child, "SIGTERM");
      await removeControlGroup(group);
    });
    pids.push(child.pid ?? 0);
    // It starts as fast as it can, and is limited from then on.
    await waitFor(
      "the operator",
      120_000,
      async () => (await fetch(`http://127.0.0.1:${metricsPort}/readyz`)).ok,
    );
    await joinControlGroup(group, 1_024, child.pid ?? 0);
    await limitProcessors(group, Number(flags.processors));
  }
  await contender.ready();
  return { pids, stop: async () => void (await Promise.all(stops.map((stop) => stop()))) };
}

async function bench(): Promise<void> {
  await contender.prepare();
  const kinds = [resources.deployments, resources.services, resources.ingresses, resources.networkPolicies];
  const stopping = new AbortController();
  const stores = [...kinds, contender.resource].map((resource) => {
    const store = new Store<KubernetesObject>({ transform: dropManagedFields });
    void new Reflector<KubernetesObject>({ client: kube, resource, store, metadataOnly: true }).run(
      stopping.signal,
    );
    return store;
  });
  const count = (store: Store<KubernetesObject>) =>
    store.list().filter(({ metadata }) => metadata?.name?.startsWith(NAME_PREFIX)).length;
  const until = (number: number) =>
    waitFor(`${number} of each`, 1_800_000, async () =>
      stores.every(
        (store) => store.hasSynced && (number === 0 ? count(store) === 0 : count(store) >= number),
      ),
    );
  const plane = () => Object.values(cluster.pids()).reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  let alone = 0;
  for (const shards of flags.shards.split(",").map(Number)) {
    const { pids, stop } = await startShards(shards);
    const [start, planeBefore, before] = [performance.now(), plane(), pids.map(cpuSeconds)];
    await forEachConcurrently([...Array(objects).keys()], 50, (index) =>
      kube.create<KubernetesObject>(contender.resource, contender.object(index)),
    );
    await until(objects);
    const seconds = (performance.now() - start) / 1_000;
    alone ||= seconds;
    const each = pids.map((pid, index) => (cpuSeconds(pid) - (before[index] ?? 0)).toFixed(1)).join(" and ");
    say(
      `${shards} shards: ${seconds.toFixed(1)} s, ${(alone / seconds).toFixed(2)} times the first rate; operators ${each} s, control plane ${(plane() - planeBefore).toFixed(1)} s of processor`,
    );
    await forEachConcurrently([...Array(objects).keys()], 50, (index) =>
      kube.delete(contender.resource, contender.refOf(index)),
    );
    await until(0);
    await stop();
  }
  stopping.abort();
}

try {
  await bench();
} finally {
  for (const cleanup of cleanups.reverse()) {
    await cleanup();
  }
}

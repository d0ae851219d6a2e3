/**
 * `npm run bench:operator`: Slipway's operator beside an ordinary Go operator (`peer/`), on one cluster in one run: creation of all objects
 * at once, change of one field on all, restart, take-over by the standby, deletion. Real etcd, kube-apiserver and controller-manager; no
 * instance runs. Flags: --objects 500, --workers 8,16,32,64 (of the peer), --only slipway or peer.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { KubernetesObject } from "@slipway/controller-runtime";
import { end } from "../../../hack/cluster/apiserver.ts";
import type { TestCluster } from "../../../hack/cluster/test-cluster.ts";
import { forEachConcurrently } from "../../../hack/lib/concurrently.ts";
import { run } from "../../../hack/lib/exec.ts";
import { recordFigures } from "../../../hack/testing/figures.ts";
import { cpuSeconds } from "../load.ts";
import { residentMiB } from "../setup.ts";
import { countByClient, latencies, readWrites } from "./audit.ts";
import { Children } from "./children.ts";
import { type Contender, IMAGE, nameOf, peer, slipway } from "./contenders.ts";
import { CLIENT, type Platform, startPlatform } from "./platform.ts";
import { type Phase, printReport } from "./report.ts";

const { values: flags } = parseArgs({
  options: {
    objects: { type: "string", default: "500" },
    workers: { type: "string", default: "8,16,32,64" },
    only: { type: "string" },
  },
});
const objects = Number(flags.objects);
const names = Array.from({ length: objects }, (_, index) => nameOf(index));
/** Objects that are created or changed at once. */
const AT_ONCE = 50;
const cleanups: (() => unknown)[] = [];

const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`);

async function bench(): Promise<void> {
  const platform = await startPlatform(cleanups);
  const contenders = [
    ...(flags.only === "peer" ? [] : [slipway(platform)]),
    ...(flags.only === "slipway"
      ? []
      : flags.workers.split(",").map((count) => peer(platform, Number(count)))),
  ];
  const phases: Phase[] = [];
  for (const contender of contenders) {
    phases.push(...(await measure(contender, platform)));
  }
  printReport(objects, phases);
  await recordRatios(phases);
}

/** What the first contender took of what each other one took for the same. */
async function recordRatios(phases: readonly Phase[]): Promise<void> {
  const [first] = phases;
  for (const other of phases.filter(({ contender }) => contender !== first?.contender)) {
    const own = phases.find(({ contender, what }) => contender === first?.contender && what === other.what);
    if (own !== undefined) {
      await recordFigures(
        "benchmarks",
        `${own.contender} to ${other.contender}, ${objects} objects: ${own.what}`,
        {
          "x its time": own.wall / other.wall,
          ...(own.cpu && other.cpu && { "x its processor time": own.cpu / other.cpu }),
          ...(own.memory && other.memory && { "x its memory": own.memory / other.memory }),
        },
      );
    }
  }
}

/** Seconds of processor that each component of the control plane has used. */
function controlPlaneSeconds(cluster: TestCluster): Map<string, number> {
  return new Map(Object.entries(cluster.pids()).map(([name, pid]) => [name, cpuSeconds(pid)]));
}

async function measure(contender: Contender, { cluster, kube }: Platform): Promise<Phase[]> {
  const { resource } = contender;
  const [namespace = ""] = contender.namespaces;
  await contender.prepare();
  let operator = await contender.start();
  cleanups.push(() => operator.kill("SIGKILL"));
  await contender.ready();
  const children = await Children.watch(kube, contender);
  // It leads, and has read everything.
  await sleep(5_000);
  const phases: Phase[] = [];

  const phase = async (what: string, begin: () => Promise<void>, untilDone: () => Promise<void>) => {
    say(`${contender.name}: ${what}`);
    const from = Date.now();
    const [cpu, plane, start] = [
      cpuSeconds(operator.pid ?? 0),
      controlPlaneSeconds(cluster),
      performance.now(),
    ];
    await begin();
    await untilDone();
    const wall = performance.now() - start;
    const used = cpuSeconds(operator.pid ?? 0) - cpu;
    const controlPlane = new Map(
      [...controlPlaneSeconds(cluster)].map(([name, seconds]) => [name, seconds - (plane.get(name) ?? 0)]),
    );
    const memory = residentMiB(operator.pid ?? 0);
    // The controllers' writes that follow count, too.
    await sleep(3_000);
    const writes = await readWrites(cluster.auditLog, from, Date.now());
    const each = latencies(writes, { names, client: CLIENT, operator: contender.client });
    phases.push({
      contender: contender.name,
      what,
      wall,
      cpu: used,
      controlPlane,
      memory,
      each,
      writes: countByClient(writes),
    });
    say(`  ${(wall / 1_000).toFixed(1)} s, ${used.toFixed(1)} s of processor, ${memory.toFixed(0)} MiB`);
  };
  const patchAll = (image: string) =>
    forEachConcurrently(names, AT_ONCE, (name) =>
      kube.patch(resource, { namespace, name }, contender.change(image)),
    );

  const indexes = names.map((_, index) => index);
  await phase(
    "creation",
    () =>
      forEachConcurrently(indexes, AT_ONCE, (index) =>
        kube.create<KubernetesObject>(resource, contender.object(index)),
      ),
    () => children.untilApplied(objects, IMAGE),
  );
  await phase(
    "change of all",
    () => patchAll(`${IMAGE}.1`),
    () => children.untilApplied(objects, `${IMAGE}.1`),
  );

  const name = names[0] ?? "";
  const since = async (what: string, begin: () => Promise<void>) => {
    say(`${contender.name}: ${what}`);
    await begin();
    const start = performance.now();
    const image = `${IMAGE}.${phases.length}`;
    await kube.patch(resource, { namespace, name }, contender.change(image));
    await children.untilChanged({ namespace, name }, image);
    const wall = performance.now() - start;
    say(`  ${(wall / 1_000).toFixed(1)} s`);
    phases.push({ contender: contender.name, what, wall });
  };
  await since("restart until a change is applied", async () => {
    await end(operator, "SIGTERM");
    operator = await contender.start();
  });
  const standby = await contender.start();
  cleanups.push(() => standby.kill("SIGKILL"));
  await sleep(10_000);
  await since("take-over by the standby until a change is applied", async () => {
    await end(operator, "SIGKILL");
  });
  operator = standby;
  await phase(
    "deletion",
    async () => {
      // kubectl would wait for one object after the other, for as long again as the deletion takes.
      const kubectl = [
        "kubectl",
        "--kubeconfig",
        cluster.kubeconfig,
        "-n",
        namespace,
        "delete",
        "--wait=false",
      ];
      await run(cluster.binary, [...kubectl, `${resource.plural}.${resource.group}`, "--all"]);
    },
    () => children.untilNone(),
  );
  await children.stop();
  await end(operator, "SIGTERM");
  return phases;
}

try {
  await bench();
} finally {
  for (const cleanup of cleanups.reverse()) {
    await cleanup();
  }
}

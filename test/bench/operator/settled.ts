/**
 * `npm run bench:settled`: what many projects take when nothing changes, and while projects come and go. The operator, its standby and an API server
 * on real etcd, kube-apiserver and controllers, with paused projects: their memory, their writes while settled, how soon a change of one project is
 * applied meanwhile, and how soon a restarted operator applies one. Flags: --objects 10000, --settled-minutes 10, --soak-minutes 0 (projects come
 * and go for so long first; 60 shows whether anything grows).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { KubernetesObject } from "@slipway/controller-runtime";
import { end } from "../../../hack/cluster/apiserver.ts";
import { forEachConcurrently } from "../../../hack/lib/concurrently.ts";
import { freePorts } from "../../../hack/lib/ports.ts";
import { waitFor } from "../../../hack/lib/wait.ts";
import { startApi, waitForProjects } from "../api-process.ts";
import { spreadOf } from "../job-audit.ts";
import { countByClient, latencies, readWrites } from "./audit.ts";
import { Children } from "./children.ts";
import { IMAGE, slipway } from "./contenders.ts";
import { CLIENT, startPlatform } from "./platform.ts";
import { type Holding, holdingText, meanOf, type Observed, observe } from "./resources.ts";

const { values: flags } = parseArgs({
  options: {
    objects: { type: "string", default: "10000" },
    "settled-minutes": { type: "string", default: "10" },
    "soak-minutes": { type: "string", default: "0" },
  },
});
const objects = Number(flags.objects);
const MINUTE = 60_000;
/** Between two changes of one project, and between two projects that come and go. */
const CHANGE_EVERY_MS = 3_000;
const TURN_EVERY_MS = 1_000;
const cleanups: (() => unknown)[] = [];
const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`);

const platform = await startPlatform(cleanups);
const { cluster, kube } = platform;
/** One may have 500 projects. */
const organizations = Array.from({ length: Math.ceil(objects / 450) }, (_, index) => `bench${index}`);
const contender = slipway(platform, organizations);
const { resource, refOf } = contender;

async function startOperator(name: string): Promise<Observed & { end(): Promise<void> }> {
  const [port = 0] = await freePorts(1);
  const child = await contender.start({ metricsPort: port });
  cleanups.push(() => child.kill("SIGKILL"));
  const metricsUrl = `http://127.0.0.1:${port}/metrics`;
  await waitFor(name, 600_000, async () => (await fetch(metricsUrl)).ok);
  return { name, pid: child.pid ?? 0, metricsUrl, end: () => end(child, "SIGTERM") };
}

async function startApiServer(): Promise<Observed> {
  const directory = mkdtempSync(join(tmpdir(), "slipway-bench-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const { account, ledgerUrl } = platform;
  const api = await startApi({ directory, ledgerUrl, account });
  cleanups.push(() => api.process.kill("SIGKILL"));
  await waitForProjects(api, objects);
  return { name: "API server", pid: api.process.pid ?? 0, metricsUrl: api.metricsUrl };
}

const create = (index: number) => kube.create<KubernetesObject>(resource, contender.object(index));

/** Projects come and go, one at a time; every process is observed each minute. */
async function soak(minutes: number, observed: readonly Observed[]): Promise<void> {
  say(`${minutes} minutes in which a project comes and one goes every ${TURN_EVERY_MS / 1_000} s`);
  const holdings = new Map<string, Holding[]>(observed.map(({ name }) => [name, []]));
  let turns = 0;
  for (let minute = 1; minute <= minutes; minute += 1) {
    const until = Date.now() + MINUTE;
    while (Date.now() < until) {
      await create(objects + turns);
      if (turns > 0) {
        await kube.delete(resource, refOf(objects + turns - 1));
      }
      turns += 1;
      await sleep(TURN_EVERY_MS);
    }
    for (const process of observed) {
      holdings.get(process.name)?.push(await observe(process));
    }
    const now = observed.map(({ name }) => `${name} ${holdingText(holdings.get(name)?.at(-1) as Holding)}`);
    say(`minute ${minute}: ${now.join("; ")}`);
  }
  await kube.delete(resource, refOf(objects + turns - 1));
  say(`${turns} projects came and went`);
  const part = Math.max(1, Math.floor(minutes / 6));
  for (const [name, all] of holdings) {
    say(`${name}, mean of the first ${part} minutes: ${holdingText(meanOf(all.slice(0, part)))}`);
    say(`${name}, mean of the last ${part} minutes:  ${holdingText(meanOf(all.slice(-part)))}`);
  }
}

/** Nothing changes but one project after the other. */
async function settle(minutes: number, children: Children): Promise<void> {
  say(`${minutes} minutes in which one project changes every ${CHANGE_EVERY_MS / 1_000} s`);
  const from = Date.now();
  const changed: string[] = [];
  for (let index = 0; Date.now() < from + minutes * MINUTE; index += 1) {
    const ref = refOf(index % objects);
    const image = `${IMAGE}.${index}`;
    changed.push(ref.name);
    await kube.patch(resource, ref, contender.change(image));
    await children.untilChanged(ref, image);
    await sleep(CHANGE_EVERY_MS);
  }
  const writes = await readWrites(cluster.auditLog, from, Date.now());
  const ofChanged = ({ name }: { name: string }) => changed.some((project) => name.startsWith(project));
  const others = writes.filter((write) => !ofChanged(write));
  const { p50, p99 } = spreadOf(
    latencies(writes, { names: changed, client: CLIENT, operator: contender.client }),
  );
  say(`${changed.length} changes, applied in p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`);
  say(`writes for ${objects - changed.length} projects that nobody changed: ${others.length}`);
  for (const [client, kinds] of countByClient(others)) {
    say(`  ${client}: ${[...kinds].map(([kind, count]) => `${kind} ${count}`).join(", ")}`);
  }
}

async function bench(): Promise<void> {
  await contender.prepare();
  let leader = await startOperator("operator");
  await contender.ready();
  const children = await Children.watch(kube, contender);
  say(`creating ${objects} projects`);
  const start = performance.now();
  await forEachConcurrently([...Array(objects).keys()], 50, create);
  await children.untilApplied(objects, IMAGE);
  say(`applied in ${((performance.now() - start) / 1_000).toFixed(0)} s`);
  const standby = await startOperator("standby");
  const observed = [leader, standby, await startApiServer()];
  await sleep(MINUTE);
  for (const process of observed) {
    say(`${process.name}: ${holdingText(await observe(process))}`);
  }
  if (Number(flags["soak-minutes"]) > 0) {
    await soak(Number(flags["soak-minutes"]), observed);
    await sleep(MINUTE);
  }
  await settle(Number(flags["settled-minutes"]), children);
  for (const process of observed) {
    say(`${process.name}: ${holdingText(await observe(process))}`);
  }
  await standby.end();
  await leader.end();
  const ended = performance.now();
  leader = await startOperator("operator");
  await kube.patch(resource, refOf(0), contender.change(`${IMAGE}.restarted`));
  await children.untilChanged(refOf(0), `${IMAGE}.restarted`);
  say(`restarted, and applied a change, in ${((performance.now() - ended) / 1_000).toFixed(1)} s`);
  say(`restarted: ${holdingText(await observe(leader))}`);
  await children.stop();
}

try {
  await bench();
} finally {
  for (const cleanup of cleanups.reverse()) {
    await cleanup();
  }
}

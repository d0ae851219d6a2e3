import { afterAll, beforeAll, expect, test } from "vitest";
import { isLong } from "../../test/kit/long.ts";
import { run } from "../lib/exec.ts";
import { waitFor } from "../lib/wait.ts";
import { type Script, scriptArgs } from "./kwok-config.ts";
import { startTestCluster, type TestCluster } from "./test-cluster.ts";

let cluster: TestCluster;
const kubectl = (...args: string[]) =>
  run(cluster.binary, ["kubectl", "--kubeconfig", cluster.kubeconfig, ...args]);
const apply = (object: object) =>
  run(cluster.binary, ["kubectl", "--kubeconfig", cluster.kubeconfig, "create", "-f", "-"], {
    input: JSON.stringify(object),
  });

beforeAll(async () => {
  cluster = await startTestCluster();
});
afterAll(() => cluster.stop());

interface Pod {
  metadata: { name: string; deletionTimestamp?: string };
  status: {
    phase: string;
    containerStatuses?: {
      state: {
        waiting?: { reason: string };
        running?: { startedAt: string };
        terminated?: {
          exitCode: number;
          reason: string;
          startedAt: string | null;
          finishedAt: string | null;
        };
      };
    }[];
  };
}

const podSpec = (script: Script) => ({
  restartPolicy: "Never",
  containers: [{ name: "app", image: "example.test/app:1", args: scriptArgs(script) }],
});
const job = (name: string, script: Script, finalizers?: string[]) => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name },
  spec: {
    backoffLimit: 0,
    podReplacementPolicy: "Failed",
    template: { metadata: { finalizers }, spec: podSpec(script) },
  },
});
const podsOf = async (name: string) =>
  (JSON.parse(await kubectl("get", "pods", "-l", `job-name=${name}`, "-o", "json")) as { items: Pod[] })
    .items;
const state = (pod: Pod) => pod.status.containerStatuses?.[0]?.state;
const phase = (name: string, wanted: string, isSo: (pod: Pod) => boolean = () => true) =>
  waitFor(
    `${name} ${wanted}`,
    30_000,
    async () => (await podsOf(name)).find((pod) => pod.status.phase === wanted && isSo(pod)),
    50,
  );
const seconds = (from?: string | null, to?: string | null) =>
  (Date.parse(to ?? "") - Date.parse(from ?? "")) / 1000;

test.for<[string, Script, { exitCode: number; reason: string; seconds: number }, string]>([
  [
    "ends well after its time",
    { wait: 1, run: 3 },
    { exitCode: 0, reason: "Completed", seconds: 3 },
    "Complete",
  ],
  ["fails with its code", { run: 1, exit: 3 }, { exitCode: 3, reason: "Error", seconds: 1 }, "Failed"],
  [
    "is killed for memory",
    { run: 2, oom: true },
    { exitCode: 137, reason: "OOMKilled", seconds: 2 },
    "Failed",
  ],
])("a container %s", async ([name, script, wanted, condition]) => {
  const id = name.replaceAll(" ", "-");
  await apply(job(id, script));
  const pod = await phase(id, wanted.exitCode === 0 ? "Succeeded" : "Failed");
  const terminated = state(pod)?.terminated;
  expect(terminated).toMatchObject({ exitCode: wanted.exitCode, reason: wanted.reason });
  expect(seconds(terminated?.startedAt, terminated?.finishedAt)).toBe(wanted.seconds);
  await kubectl("wait", `job/${id}`, `--for=condition=${condition}`, "--timeout=20s");
});

test("a container that never starts has no times", async () => {
  await apply(job("unstartable", { unstartable: true }));
  const terminated = state(await phase("unstartable", "Failed"))?.terminated;
  expect(terminated).toMatchObject({
    exitCode: 128,
    reason: "StartError",
    startedAt: null,
    finishedAt: null,
  });
  await apply(job("stuck", { stuck: true }));
  // Pending as soon as it is made, before its node has seen it.
  await phase("stuck", "Pending", (pod) => state(pod)?.waiting?.reason === "ImagePullBackOff");
  await kubectl("delete", "pod", "-l", "job-name=stuck", "--wait=false");
  await kubectl("delete", "job", "stuck", "--timeout=20s");
});

test("a deleted pod ends with 143 after its own time, 137 after its grace, and stays while it has a finalizer", async () => {
  await apply(job("graceful", { run: 600, grace: 2 }, ["slipway.test/hold"]));
  const running = await phase("graceful", "Running");
  await kubectl("delete", "pod", running.metadata.name, "--wait=false");
  const pod = await phase("graceful", "Failed");
  expect(state(pod)?.terminated).toMatchObject({ exitCode: 143, reason: "Error" });
  expect(state(pod)?.terminated?.startedAt).toBe(state(running)?.running?.startedAt);
  expect((await podsOf("graceful")).map(({ metadata }) => metadata.name)).toContain(running.metadata.name);

  await apply(job("stubborn", { run: 600, grace: 600 }, ["slipway.test/hold"]));
  const stubborn = await phase("stubborn", "Running");
  await kubectl("delete", "pod", stubborn.metadata.name, "--wait=false", "--grace-period=2");
  expect(state(await phase("stubborn", "Failed"))?.terminated).toMatchObject({ exitCode: 137 });
  for (const { metadata } of [pod, stubborn]) {
    await kubectl("patch", "pod", metadata.name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}');
    await kubectl("wait", `pod/${metadata.name}`, "--for=delete", "--timeout=20s");
  }
});

test("what a test writes into a running pod's status stays", async () => {
  await apply(job("evicted", { run: 3 }));
  const running = await phase("evicted", "Running");
  const status = { phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory." };
  await kubectl(
    "patch",
    "pod",
    running.metadata.name,
    "--subresource=status",
    "--type=merge",
    "-p",
    JSON.stringify({ status }),
  );
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  const [pod] = await podsOf("evicted");
  expect(pod?.status).toMatchObject(status);
});

test.skipIf(!isLong)(
  "a CronJob makes its Job in its minute, and nobody runs it while it is suspended (--long)",
  {
    timeout: 90_000,
  },
  async () => {
    const { spec } = job("minutely", { run: 1 });
    await apply({
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "minutely" },
      spec: { schedule: "* * * * *", timeZone: "Etc/UTC", jobTemplate: { spec: { ...spec, suspend: true } } },
    });
    const name = await waitFor("a Job", 70_000, async () => {
      const { items } = JSON.parse(await kubectl("get", "jobs", "-o", "json")) as {
        items: { metadata: { name: string } }[];
      };
      return items.map(({ metadata }) => metadata.name).find((job) => /^minutely-[0-9]+$/.test(job));
    });
    expect(Math.abs(Date.now() / 60_000 - Number(name.slice("minutely-".length)))).toBeLessThan(1);
    expect(await podsOf(name)).toEqual([]);
    await kubectl("patch", "job", name, "--type=merge", "-p", '{"spec":{"suspend":false}}');
    const pod = await phase(name, "Succeeded");
    expect(await kubectl("logs", pod.metadata.name)).toContain("a line");
  },
);

test.skipIf(!isLong)("survives a restart of the apiserver (--long)", { timeout: 150_000 }, async () => {
  await apply(job("before", { run: 5 }));
  await phase("before", "Running");
  await cluster.restart();
  // Watches reconnect after half a minute at the latest.
  await kubectl("wait", "job/before", "--for=condition=Complete", "--timeout=60s");
});

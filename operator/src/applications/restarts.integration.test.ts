import { customResource, type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  untilUnchanged,
} from "../../../test/kit/operator/harness.ts";
import { makePod } from "../../../test/kit/operator/pods.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { projectResource } from "../resources.ts";

const namespace = "slipway-org-alpha";
const coreEvents = customResource("", "v1", "events", "Event");

let cluster: TestCluster;
let operator: Awaited<ReturnType<typeof startOperator>>;
const start = () => startOperator(cluster, { listOrganizations: async () => ["alpha"] });

beforeAll(async () => {
  cluster = await startCluster();
  operator = await start();
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await operator.stop();
  await cluster.stop();
});

const ref = (name: string) => ({ namespace, name });
const get = (name: string) => cluster.client.get<Project>(projectResource, ref(name));

/** A project whose one instance a kubelet has restarted. */
async function restarted(name: string, spec: Partial<Project["spec"]>, terminated: object, probe?: string) {
  await cluster.client.create<Project>(projectResource, exampleProject(ref(name), spec));
  await eventually(() => exists(cluster.client, resources.deployments, ref(name)));
  const lastState = { terminated: { containerID: "", ...terminated } };
  const running = { running: { startedAt: new Date().toISOString() } };
  await makePod(cluster.client, ref(name), { container: { restartCount: 1, state: running, lastState } });
  if (probe !== undefined) {
    const pod = await cluster.client.get<KubernetesObject>(resources.pods, ref(`${name}-pod`));
    await cluster.client.create<KubernetesObject>(coreEvents, {
      metadata: { name: `${name}.kill`, namespace },
      involvedObject: { kind: "Pod", namespace, name: `${name}-pod`, uid: pod.metadata?.uid },
      reason: "Killing",
      message: `Container app failed ${probe} probe, will be restarted`,
      type: "Normal",
      lastTimestamp: (terminated as { finishedAt: string }).finishedAt,
    } as KubernetesObject);
  }
}

const terminated = (extra: object = {}) => {
  const at = (ms: number) => `${new Date(Date.now() - ms).toISOString().slice(0, 19)}Z`;
  return { exitCode: 3, reason: "Error", startedAt: at(20_000), finishedAt: at(2_000), ...extra };
};

async function notes(project: string): Promise<string[]> {
  const { items } = await cluster.client.list<
    KubernetesObject & { note?: string; regarding?: { name?: string } }
  >(resources.events, { namespace, fieldSelector: "reason=InstanceRestarted" });
  return items.filter(({ regarding }) => regarding?.name === project).map(({ note = "" }) => note);
}

const counted = async (reason: string) => {
  const line = `slipway_instance_restarts_total\\{reason="${reason}"\\} (\\d+)`;
  return Number(new RegExp(line).exec(await operator.metrics())?.[1]);
};

test("a restart is in the status, an Event and the metric, once, also for another process", async () => {
  const before = await counted("Error");
  await restarted("exits", {}, terminated({ message: "no \u001b[1mdatabase\u001b[0m\n" }));
  const { status } = await eventually(async () => {
    const project = await get("exits");
    return project.status?.lastTermination && project;
  });
  expect(status?.lastTermination).toMatchObject({
    instance: "exits-pod",
    exitCode: 3,
    reason: "Error",
    restarts: 1,
    lastLines: "no database",
  });
  await eventually(async () => (await notes("exits")).length > 0);
  expect(await counted("Error")).toBe(before + 1);
  await untilUnchanged(cluster);
  await operator.stop();
  operator = await start();
  await eventually(async () => (await operator.metrics()).includes("slipway_instance_restarts_total"));
  await cluster.client.patch(projectResource, ref("exits"), { spec: { description: "another" } });
  const generation = (await get("exits")).metadata.generation;
  await eventually(async () => (await get("exits")).status?.observedGeneration === generation);
  expect(await counted("Error")).toBe(0);
  expect(await notes("exits")).toEqual(["Instance exits-pod ended by itself: exit code 3, restart 1."]);
});

test("one whose start took too long fails its deployment long before the deadline of rollouts", async () => {
  const healthcheck = { enabled: true, path: "/", startupTimeoutSeconds: 10 };
  await restarted("late", { plan: "basic", healthcheck }, terminated({ exitCode: 137 }), "startup");
  const { status } = await eventually(async () => {
    const project = await get("late");
    return project.status?.lastDeployment?.status === "failed" && project;
  });
  expect(status?.lastDeployment?.message).toContain("did not start to serve within the time");
  expect(status?.lastTermination).toMatchObject({ reason: "StartupTimeout", exitCode: 137 });
});

test("one that a liveness probe had ended says so, though its Event is gone by now", async () => {
  const healthcheck = { enabled: true, path: "/", livenessPath: "/livez" };
  await restarted("hangs", { plan: "basic", healthcheck }, terminated({ exitCode: 137 }), "liveness");
  const reason = async () => (await get("hangs")).status?.lastTermination?.reason;
  await eventually(async () => (await reason()) === "LivenessFailed");
  await cluster.client.delete(coreEvents, ref("hangs.kill"));
  await cluster.client.patch(projectResource, ref("hangs"), { spec: { description: "another" } });
  const generation = (await get("hangs")).metadata.generation;
  await eventually(async () => (await get("hangs")).status?.observedGeneration === generation);
  expect(await reason()).toBe("LivenessFailed");
});

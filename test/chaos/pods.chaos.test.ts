import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { JobRun, JobRunPhase } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Script } from "../../hack/cluster/kwok-config.ts";
import { run as command } from "../../hack/lib/exec.ts";
import { waitFor } from "../../hack/lib/wait.ts";
import { jobRunResource, NOT_NOW } from "../kit/processes/job-platform.ts";
import { runNow } from "./support/drive.ts";
import { type ChaosEnvironment, startEnvironment } from "./support/environment.ts";
import { expectNoViolations } from "./support/observation-log.ts";

let environment: ChaosEnvironment;
beforeAll(async () => {
  environment = await startEnvironment();
});
afterAll(() => environment?.stop());

interface Pod extends KubernetesObject {
  metadata: { name: string; namespace: string };
  status?: { containerStatuses?: { name: string; state?: { running?: { startedAt: string } } }[] };
}

/** A run whose container runs, and its pod. */
interface ActiveRun {
  run: string;
  pod: Pod;
}

const kubectl = (...args: string[]) =>
  command(environment.platform.cluster.binary, [
    "kubectl",
    "--kubeconfig",
    environment.platform.cluster.kubeconfig,
    "--namespace",
    environment.namespace,
    ...args,
  ]);

/** Starts a run and waits until the operator reports its container as running. */
async function startRun(project: string): Promise<ActiveRun> {
  const { platform, namespace } = environment;
  const run = await runNow(environment, project);
  await waitFor(`${run} to run`, 90_000, async () => {
    const found = await platform.client.get<JobRun>(jobRunResource, { namespace, name: run });
    return found.status?.phase === "running";
  });
  const [pod] = await platform.client.listAll<Pod>(resources.pods, {
    namespace,
    labelSelector: `batch.kubernetes.io/job-name=${run}`,
  });
  if (!pod) {
    throw new Error(`${run} has no pod`);
  }
  return { run, pod };
}

/** What the kubelet writes when it evicts a pod for lack of memory. */
async function evictByKubelet({ pod }: ActiveRun): Promise<void> {
  const [container] = pod.status?.containerStatuses ?? [];
  const { startedAt } = container?.state?.running ?? {};
  const terminated = {
    exitCode: 137,
    reason: "Error",
    startedAt,
    finishedAt: `${new Date().toISOString().slice(0, 19)}Z`,
  };
  const status = {
    phase: "Failed",
    reason: "Evicted",
    message: "The node was low on resource: memory.",
    containerStatuses: [{ ...container, ready: false, started: false, state: { terminated } }],
  };
  await environment.platform.client.patch(
    resources.pods,
    pod.metadata,
    { status },
    { subresource: "status" },
  );
}

async function evictByApi({ pod }: ActiveRun): Promise<void> {
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name: pod.metadata.name, namespace: pod.metadata.namespace },
  };
  await command(
    environment.platform.cluster.binary,
    [
      "kubectl",
      "--kubeconfig",
      environment.platform.cluster.kubeconfig,
      "create",
      "--raw",
      `/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}/eviction`,
      "-f",
      "-",
    ],
    { input: JSON.stringify(eviction) },
  );
}

const withoutFinalizers = '{"metadata":{"finalizers":null}}';

/** A fault of a run, and the phase in which it has to end. */
const cases: {
  name: string;
  script: Script;
  fault: (active: ActiveRun) => Promise<unknown>;
  phase: JobRunPhase;
}[] = [
  {
    name: "the pod is deleted",
    script: { run: 600, grace: 3 },
    fault: ({ pod }) => kubectl("delete", "pod", pod.metadata.name, "--wait=false"),
    phase: "failed",
  },
  {
    name: "the pod is deleted by force",
    script: { run: 600 },
    fault: ({ pod }) => kubectl("delete", "pod", pod.metadata.name, "--force", "--wait=false"),
    phase: "failed",
  },
  { name: "the pod is evicted through the API", script: { run: 600 }, fault: evictByApi, phase: "failed" },
  {
    name: "the pod is evicted by its kubelet",
    script: { run: 600 },
    fault: evictByKubelet,
    phase: "failed",
  },
  {
    name: "the container is killed for memory",
    script: { run: 20, oom: true },
    fault: async () => undefined,
    phase: "failed",
  },
  {
    name: "the JobRun is deleted by hand",
    script: { run: 20 },
    fault: ({ run }) => kubectl("delete", "jobrun", run, "--wait=false"),
    phase: "succeeded",
  },
  {
    // It is deleted once its run is charged: the container runs on.
    name: "the Job is deleted by hand",
    script: { run: 20 },
    fault: ({ run }) => kubectl("delete", "job", run, "--wait=false"),
    phase: "succeeded",
  },
  {
    name: "the Job is deleted by hand, its pod first",
    script: { run: 600 },
    fault: ({ run }) => kubectl("delete", "job", run, "--wait=false", "--cascade=foreground"),
    phase: "failed",
  },
  {
    name: "the Job is removed by force with its pod",
    script: { run: 600 },
    fault: async ({ run, pod }) => {
      await kubectl("patch", "job", run, "--type=merge", "-p", withoutFinalizers);
      await kubectl("delete", "job", run, "--wait=false", "--cascade=orphan");
      await kubectl("delete", "pod", pod.metadata.name, "--wait=false");
    },
    phase: "failed",
  },
  {
    name: "JobRun, Job and pod are deleted by hand",
    script: { run: 600, grace: 2 },
    fault: async ({ run, pod }) => {
      await kubectl("delete", "jobrun", run, "--wait=false");
      await kubectl("delete", "job", run, "--wait=false");
      await kubectl("delete", "pod", pod.metadata.name, "--wait=false").catch(() => undefined);
    },
    phase: "failed",
  },
];

let projects: string[];
beforeAll(async () => {
  projects = await environment.jobs(
    "pod",
    cases.map(({ script }) => script),
    NOT_NOW,
  );
});

test.concurrent.for(cases.map((each, index) => ({ ...each, index })))(
  "$name",
  { timeout: 420_000 },
  async ({ fault, phase, index }, { expect }) => {
    const project = projects[index] ?? "";
    const active = await startRun(project);
    await fault(active);
    expectNoViolations(await environment.closeAndCheck([project]));
    const { runs } = await environment.observer.records([project]);
    expect(runs.find(({ id }) => id === active.run)?.status).toBe(phase);
  },
);

// Alone, for they stop processes of the environment: a Job makes another pod in place of one that was removed by force, within a fifth of a
// second at times, and the operator may be faster or slower.
describe("the pod is removed by force, with its finalizer", { timeout: 420_000 }, () => {
  const removeByForce = async ({ pod }: ActiveRun) => {
    await kubectl("patch", "pod", pod.metadata.name, "--type=merge", "-p", withoutFinalizers);
    await kubectl("delete", "pod", pod.metadata.name, "--force", "--wait=false");
  };
  const start = async (name: string) => {
    const [project = ""] = await environment.jobs(name, [{ run: 600 }], NOT_NOW);
    return { project, active: await startRun(project) };
  };
  const podsOf = async (project: string, run: string) => {
    const { pods } = await environment.observer.records([project]);
    return pods.filter((pod) => pod.run === run);
  };

  test("before its Job can make another, the operator stops it", async () => {
    const { controllerManager } = environment.platform.cluster;
    const { project, active } = await start("removed");
    await controllerManager.stop("SIGKILL");
    await removeByForce(active);
    await waitFor("the Job to be deleted", 60_000, async () => {
      const ref = { namespace: environment.namespace, name: active.run };
      const job = await environment.platform.client.getOrUndefined(resources.jobs, ref);
      return job === undefined || job.metadata?.deletionTimestamp !== undefined;
    });
    await controllerManager.restart();
    const vanished = new Set([active.run]);
    expectNoViolations(await environment.closeAndCheck([project], { vanished }));
    expect(await podsOf(project, active.run)).toHaveLength(1);
    const { runs } = await environment.observer.records([project]);
    expect(runs.map(({ status }) => status)).toEqual(["failed"]);
  });

  test("another that its Job has made by then is stopped, and costs nothing", async () => {
    const { project, active } = await start("replaced");
    environment.operator.freeze();
    try {
      await removeByForce(active);
      await waitFor("the Job's other pod", 60_000, async () => {
        const [, other] = await podsOf(project, active.run);
        return other?.startedAt !== undefined;
      });
    } finally {
      environment.operator.thaw();
    }
    const runs = new Set([active.run]);
    expectNoViolations(await environment.closeAndCheck([project], { vanished: runs, replaced: runs }));
    const [, other] = await podsOf(project, active.run);
    // Undisturbed, it would have run for 10 minutes.
    expect(other).toMatchObject({ exitCode: 143 });
    const charged = await environment.observer.records([project]);
    expect(charged.runs.map(({ status }) => status)).toEqual(["failed"]);
  });
});

test("no write of the operator is unknown", () => {
  const unknown = [...environment.proxy.committed.keys()].filter((kind) => kind.startsWith("unknown"));
  expect(unknown).toEqual([]);
});

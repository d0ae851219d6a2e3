import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Deployment, Project } from "@slipway/crds";
import type { Deployment as DeploymentRow } from "@slipway/ledger";
import { type Clock, systemClock } from "@slipway/process";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  eventually,
  exists,
  serveDeployment,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
  untilUnchanged,
} from "../../../../test/kit/operator/harness.ts";
import { deploy, makePod, removePods, serving } from "../../../../test/kit/operator/pods.ts";
import { exampleProject } from "../../../../test/kit/operator/projects.ts";
import { projectResource } from "../../resources.ts";

const namespace = "slipway-org-alpha";
const IMAGE = "registry.example/team/app:1.0.0";
const digest = (letter: string) => `sha256:${letter.repeat(64)}`;

/** Real time, advanced by as much as a test sets, or stopped; timers stay real. */
const clock: Clock & { aheadMs: number; frozenAt: number | undefined } = {
  ...systemClock,
  aheadMs: 0,
  frozenAt: undefined,
  now: () => new Date(clock.frozenAt ?? Date.now() + clock.aheadMs),
};

let cluster: TestCluster;
let operator: TestOperator;
let rows: DeploymentRow[] = [];
let ledgerIsDown = false;
const start = () =>
  startOperator(cluster, {
    listOrganizations: async () => ["alpha"],
    clock,
    rolloutDeadlineSeconds: 60,
    recordDeployment: async (row) => {
      if (ledgerIsDown) {
        throw new Error("connection refused");
      }
      rows.push(row);
    },
  });

beforeAll(async () => {
  cluster = await startCluster();
  operator = await start();
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await operator.stop();
  await cluster.stop();
});
beforeEach(() => {
  clock.aheadMs = 0;
  clock.frozenAt = undefined;
  rows = [];
  ledgerIsDown = false;
});

const ref = (name: string) => ({ namespace, name });
const get = (name: string) => cluster.client.get<Project>(projectResource, ref(name));
const patch = (name: string, spec: object) => cluster.client.patch(projectResource, ref(name), { spec });
const image = (tag: string) => ({ image: { url: `registry.example/team/app:${tag}`, isPublic: true } });
/** Wakes the operator, as anything that happens to an instance does. */
const touch = (name: string) =>
  cluster.client.patch(resources.deployments, ref(name), {
    metadata: { annotations: { touched: String(Math.random()) } },
  });
type Check = (project: Project, deployments: Deployment[]) => boolean;
/** Whether a project passes a check. One that never does is shown with its Deployment. */
const until = async (name: string, check: Check, meanwhile?: () => Promise<void>) => {
  try {
    return await eventually(async () => {
      await meanwhile?.();
      const project = await get(name);
      return check(project, project.status?.deployments ?? []) && project;
    });
  } catch (cause) {
    const { status } = await get(name);
    const deployment = await cluster.client.getOrUndefined<KubernetesObject>(
      resources.deployments,
      ref(name),
    );
    throw new Error(`${name} has the status ${JSON.stringify(status)} with ${JSON.stringify(deployment)}`, {
      cause,
    });
  }
};
/** The same while the Deployment controller works: the operator may write a Deployment again after it was served. */
const served = (name: string, check: Check) =>
  until(name, check, () => serveDeployment(cluster.client, ref(name)));
const states = (project: Project) => project.status?.deployments?.map(({ status }) => status);
/** Waits until the newest deployment has this status and is recorded. */
const newest = async (name: string, status: Deployment["status"], count: number) => {
  const recorded = status === "in_progress" ? "started" : "finished";
  const project = await (status === "succeeded" ? served : until)(
    name,
    (_, list) => list.length === count && list[0]?.status === status && list[0].recorded === recorded,
  );
  return project.status?.deployments?.[0] as Deployment;
};
const recorded = (name: string) =>
  rows.filter(({ project_id }) => project_id === name).map(({ status }) => status);
/** What the Deployment is to run, runs. */
async function serve(name: string, tag = "1.0.0", letter = "a"): Promise<void> {
  await applied(name, tag);
  await deploy(cluster.client, ref(name), `registry.example/team/app:${tag}`, digest(letter));
}
async function running(name: string, spec: Partial<Project["spec"]> = {}): Promise<void> {
  const project = exampleProject(ref(name), { exposure: "private", ...spec });
  await cluster.client.create<Project>(projectResource, project);
  await eventually(() => exists(cluster.client, resources.deployments, ref(name)));
  await newest(name, "in_progress", 1);
  await serve(name);
  await newest(name, "succeeded", 1);
}

/** Writes the Deployment's status as its controller does when a rollout of one instance makes no progress. */
async function stuck(
  name: string,
  reason: "ProgressDeadlineExceeded" | "ReplicaSetUpdated",
  stuckInMs = 60_000,
): Promise<void> {
  const live = await cluster.client.get<KubernetesObject>(resources.deployments, ref(name));
  const status = {
    observedGeneration: live.metadata?.generation,
    replicas: 2,
    updatedReplicas: 1,
    readyReplicas: 1,
    availableReplicas: 1,
    conditions: [
      {
        type: "Progressing",
        status: reason === "ReplicaSetUpdated" ? "True" : "False",
        reason,
        lastUpdateTime: new Date(Date.now() + stuckInMs).toISOString(),
      },
    ],
  };
  await cluster.client.patch(resources.deployments, ref(name), { status }, { subresource: "status" });
}

const applied = (name: string, tag: string) =>
  eventually(
    async () =>
      /"image":"[^"]*app:([^"@]*)/.exec(
        JSON.stringify(await cluster.client.get(resources.deployments, ref(name))),
      )?.[1] === tag,
  );

describe("a deployment", () => {
  // Shows: docs/applications.md#project-settings: deployments: recorded with digest and settings, and
  test("is recorded when it begins and when it has succeeded, with the digest that runs", async () => {
    await running("first");
    const { status } = await get("first");
    expect(status?.deployments).toHaveLength(1);
    expect(status?.deployments?.[0]).toMatchObject({
      status: "succeeded",
      updatedImage: true,
      image: { reference: IMAGE, digest: digest("a") },
      settings: { plan: "basic", paymentMode: "hourly", port: 8080, image: { url: IMAGE } },
      generation: 1,
    });
    const [{ id, settingsHash } = {} as Deployment] = status?.deployments ?? [];
    expect(status?.lastDeployment).toMatchObject({ id, settingsHash, status: "succeeded" });
    expect(recorded("first")).toEqual(["in_progress", "succeeded"]);
    expect(rows[1]).toMatchObject({
      id,
      organization_id: "alpha",
      digest: digest("a"),
      updated_image: true,
    });
  });

  test("begins with new settings, and not by scaling, renaming or another exposure", async () => {
    await patch("first", { instances: 2, name: "renamed", exposure: "public" });
    await until("first", ({ status, metadata }) => status?.observedGeneration === metadata.generation);
    expect((await get("first")).status?.deployments).toHaveLength(1);
    await patch("first", { ...image("2.0.0"), instances: 1, exposure: "private" });
    expect(await newest("first", "in_progress", 2)).toMatchObject({ updatedImage: true });
    await serve("first", "2.0.0", "b");
    expect((await newest("first", "succeeded", 2)).image.digest).toBe(digest("b"));
  });

  // Shows: docs/applications.md#states: `deploying` | a deployment or a pause is in progress
  test("begins when it is requested again, and the pods report why", async () => {
    const restartedAt = "2026-01-02T03:04:05Z";
    await patch("first", { restartedAt });
    expect(await newest("first", "in_progress", 3)).toMatchObject({ updatedImage: false });
    const live = await eventually(async () => {
      const deployment = await cluster.client.get<
        KubernetesObject & { spec: { template: { metadata: { annotations: Record<string, string> } } } }
      >(resources.deployments, ref("first"));
      const { annotations } = deployment.spec.template.metadata;
      return annotations["slipway.dev/restarted-at"] === restartedAt && deployment;
    });
    expect(live.spec).toMatchObject({ minReadySeconds: 5, progressDeadlineSeconds: 60 });
    await serve("first", "2.0.0", "b");
    await newest("first", "succeeded", 3);
  });

  test("runs the very image that it is pinned to", async () => {
    const pinned = { url: IMAGE, isPublic: true, digest: digest("c") };
    await patch("first", { image: pinned });
    await newest("first", "in_progress", 4);
    await eventually(async () =>
      JSON.stringify(await cluster.client.get(resources.deployments, ref("first"))).includes(
        `app:1.0.0@${digest("c")}"`,
      ),
    );
    await serve("first", "1.0.0", "c");
    await newest("first", "succeeded", 4);
  });

  test("is superseded by the next", async () => {
    await patch("first", image("3.0.0"));
    await newest("first", "in_progress", 5);
    await patch("first", image("4.0.0"));
    await newest("first", "in_progress", 6);
    expect(states(await get("first"))?.slice(0, 3)).toEqual(["in_progress", "superseded", "succeeded"]);
    await serve("first", "4.0.0", "d");
    await newest("first", "succeeded", 6);
  });
});

describe("a project with a volume", () => {
  const storage = { persistent: true, capacity: 1, dirPathToPersist: "/data" };
  const onNode = [{ type: "PodScheduled", status: "True" }];
  const pullPods = () =>
    cluster.client.listAll<KubernetesObject>(resources.pods, {
      namespace,
      labelSelector: "slipway.dev/image-pull=kept",
    });
  const isDeleted = () => eventually(async () => (await pullPods()).length === 0);
  /** Writes the status of the one pod that pulls, as the kubelet would. */
  const pulled = async (container: object) => {
    const [pod] = await eventually(async () => {
      const found = await pullPods();
      return found.length === 1 && found;
    });
    const status = {
      phase: "Pending",
      containerStatuses: [
        { name: "app", image: "app", restartCount: 0, ready: false, imageID: "", ...container },
      ],
    };
    const at = { namespace, name: pod?.metadata?.name ?? "" };
    await cluster.client.patch(resources.pods, at, { status }, { subresource: "status" });
  };
  const liveImage = async () =>
    /"image":"[^"]*app:([^"]*)"/.exec(
      JSON.stringify(await cluster.client.get(resources.deployments, ref("kept"))),
    )?.[1];
  const expire = async (count: number) => {
    const { startedAt } = await newest("kept", "in_progress", count);
    clock.frozenAt = Date.parse(startedAt) + 71_000;
    await touch("kept");
    return newest("kept", "failed", count);
  };

  // Shows: docs/applications.md#project-settings: image: with a volume, the old version serves until the
  test("serves on while the next image is pulled on its node, and for good where it cannot be", async () => {
    await running("kept", { storage });
    const bound = { status: { phase: "Bound" } };
    await cluster.client.patch(resources.persistentVolumeClaims, ref("kept"), bound, {
      subresource: "status",
    });
    await until("kept", ({ status }) => status?.phase === "running");
    const state = serving("registry.example/team/app:1.0.0", digest("a"));
    await makePod(cluster.client, ref("kept"), { ...state, conditions: onNode });
    await patch("kept", image("missing"));
    await newest("kept", "in_progress", 2);
    await pulled({ state: { waiting: { reason: "ErrImagePull" } } });
    const failing = await until("kept", ({ status }) => status?.phase === "failing");
    expect(failing.status?.conditions).toContainEqual(
      expect.objectContaining({ type: "WorkloadAvailable", status: "True" }),
    );
    expect(await liveImage()).toBe("1.0.0");
    expect(await expire(2)).toMatchObject({ message: "The image cannot be pulled." });
    await isDeleted();
    expect(await liveImage()).toBe("1.0.0");
    await until("kept", ({ status }) =>
      (status?.conditions ?? []).some(
        ({ type, message }) =>
          type === "RolloutFailed" && message?.includes("The version before it runs again."),
      ),
    );
    expect(recorded("kept")).toEqual(["in_progress", "succeeded", "in_progress", "failed"]);
  });

  // Shows: docs/applications.md#project-settings: image: with a volume, the old version serves until the
  test("goes back automatically from a version that does not start, to the very image that ran", async () => {
    clock.frozenAt = undefined;
    await patch("kept", image("broken"));
    await newest("kept", "in_progress", 3);
    await pulled({ imageID: "app@sha256:1", state: { terminated: { reason: "StartError", exitCode: 128 } } });
    await applied("kept", "broken");
    await isDeleted();
    await makePod(cluster.client, ref("kept"), {
      container: { state: { waiting: { reason: "CrashLoopBackOff" } } },
      conditions: onNode,
    });
    expect((await expire(3)).message).toContain("exits again and again");
    await eventually(async () => (await liveImage()) === `1.0.0@${digest("a")}`);
    await deploy(cluster.client, ref("kept"), "registry.example/team/app:1.0.0", digest("a"));
    const back = await until("kept", ({ status }) => status?.readyInstances === 1);
    expect(back.status?.phase).toBe("failing");
    expect(states(back)).toEqual(["failed", "failed", "succeeded"]);
    await untilUnchanged(cluster);

    clock.frozenAt = undefined;
    await makePod(cluster.client, ref("kept"), { ...serving("app", digest("a")), conditions: onNode });
    await patch("kept", image("fixed"));
    await pulled({ imageID: "app@sha256:1", state: { terminated: { reason: "StartError", exitCode: 128 } } });
    await serve("kept", "fixed", "f");
    await newest("kept", "succeeded", 4);
    await until("kept", ({ status }) => status?.phase === "running");
    await removePods(cluster.client, ref("kept"));
  });
});

describe("a rollout that misses its deadline", () => {
  // Shows: docs/applications.md#project-settings: deployments: recorded with digest and settings, and
  test("has failed with its reason, and recovers with the next", async () => {
    await running("late");
    await patch("late", image("bad"));
    await newest("late", "in_progress", 2);
    await applied("late", "bad");
    await makePod(cluster.client, ref("late"), {
      container: { state: { waiting: { reason: "ErrImagePull" } } },
    });
    await stuck("late", "ReplicaSetUpdated");
    const failing = await until("late", ({ status }) => status?.phase === "failing");
    expect(states(failing)?.[0]).toBe("in_progress");
    expect(failing.status?.conditions?.[0]).toMatchObject({ type: "Ready", reason: "ImagePullFailed" });

    await stuck("late", "ProgressDeadlineExceeded");
    expect(await newest("late", "failed", 2)).toMatchObject({ message: "The image cannot be pulled." });
    const failed = await until(
      "late",
      ({ status }) => status?.conditions?.[0]?.reason === "DeadlineExceeded",
    );
    expect(failed.status).toMatchObject({
      phase: "failing",
      image: { reference: IMAGE },
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: "Ready", status: "False", message: "The image cannot be pulled." }),
        expect.objectContaining({ type: "RolloutFailed", status: "True" }),
        expect.objectContaining({ type: "WorkloadAvailable", status: "True" }),
      ]),
    });
    expect(recorded("late")).toEqual(["in_progress", "succeeded", "in_progress", "failed"]);

    // A flap of the new instance is progress to Kubernetes, and no success.
    await stuck("late", "ReplicaSetUpdated");
    await touch("late");
    await patch("late", image("1.0.0"));
    await newest("late", "in_progress", 3);
    expect(
      (await until("late", ({ status }) => status?.phase === "deploying")).status?.conditions,
    ).not.toContainEqual(expect.objectContaining({ type: "RolloutFailed" }));
    await cluster.client.patch(
      resources.deployments,
      ref("late"),
      { status: { conditions: [] } },
      { subresource: "status" },
    );
    await serve("late");
    await newest("late", "succeeded", 3);
    await until("late", ({ status }) => status?.phase === "running");
  });

  test("has succeeded after all when it completes, and the ledger learns of it", async () => {
    await patch("late", image("slow"));
    await newest("late", "in_progress", 4);
    await applied("late", "slow");
    await makePod(cluster.client, ref("late"), { container: { state: { running: {} } } });
    await stuck("late", "ProgressDeadlineExceeded");
    expect((await newest("late", "failed", 4)).message).toBe(
      "The application runs, but nothing answers on port 8080.",
    );
    await serve("late", "slow", "e");
    expect(await newest("late", "succeeded", 4)).toMatchObject({ image: { digest: digest("e") } });
    expect(recorded("late")).toEqual(["in_progress", "failed", "succeeded"]);
    await until("late", ({ status }) => status?.phase === "running");
  });

  test("has not failed by what Kubernetes reports of the version before", async () => {
    await patch("late", image("next"));
    await newest("late", "in_progress", 5);
    await applied("late", "next");
    await stuck("late", "ProgressDeadlineExceeded", -1_000);
    await until("late", ({ status }) => status?.phase === "deploying");
    await touch("late");
    expect(states(await get("late"))?.[0]).toBe("in_progress");
    await serve("late", "next", "e");
    await newest("late", "succeeded", 5);
  });

  test("has failed by its age alone when Kubernetes sees progress again and again", async () => {
    await patch("late", image("flapping"));
    const begun = Date.parse((await newest("late", "in_progress", 6)).startedAt);
    await applied("late", "flapping");
    await stuck("late", "ReplicaSetUpdated");
    clock.frozenAt = begun + 69_000;
    await touch("late");
    await until("late", (_, list) => list[0]?.status === "in_progress");
    clock.frozenAt = begun + 71_000;
    await touch("late");
    await newest("late", "failed", 6);
    await until("late", ({ status }) => status?.phase === "failing");
  });
});

describe("a paused project", () => {
  test("ends the deployment under way, and deploys what was changed when it resumes", async () => {
    await running("sleeper");
    await patch("sleeper", image("2.0.0"));
    await newest("sleeper", "in_progress", 2);
    await patch("sleeper", { paused: true });
    await newest("sleeper", "superseded", 2);
    await served("sleeper", ({ status }) => status?.phase === "stopped");
    await patch("sleeper", image("3.0.0"));
    await applied("sleeper", "3.0.0");
    // It is stopped again once the Deployment controller has observed the change.
    await served(
      "sleeper",
      ({ status, metadata }) =>
        status?.observedGeneration === metadata.generation && status?.phase === "stopped",
    );
    expect((await get("sleeper")).status?.deployments).toHaveLength(2);

    await patch("sleeper", { paused: false });
    await newest("sleeper", "in_progress", 3);
    await until("sleeper", ({ status }) => status?.phase === "resuming");
    await serve("sleeper", "3.0.0", "f");
    await newest("sleeper", "succeeded", 3);
    await until("sleeper", ({ status }) => status?.phase === "running");
  });

  test("resumes what ran without a deployment, and is failing when it does not come back in time", async () => {
    await patch("sleeper", { paused: true });
    await eventually(async () => (await get("sleeper")).status?.phase !== "running");
    await served("sleeper", ({ status }) => status?.phase === "stopped");
    await patch("sleeper", { paused: false });
    await until("sleeper", ({ status }) => status?.phase === "resuming");
    await makePod(cluster.client, ref("sleeper"), { container: { state: { running: {} } } });
    clock.aheadMs = 75_000;
    await touch("sleeper");
    const failing = await until("sleeper", ({ status }) => status?.phase === "failing");
    expect(failing.status?.conditions?.[0]?.message).toContain("nothing answers on port 8080");
    expect(states(failing)?.[0]).toBe("succeeded");
    await serve("sleeper", "3.0.0", "f");
    await served("sleeper", ({ status }) => status?.phase === "running");
    expect((await get("sleeper")).status?.deployments).toHaveLength(3);
  });
});

describe("while the ledger is away", () => {
  test("rollouts continue, and all of them are recorded afterwards", async () => {
    await running("unrecorded");
    ledgerIsDown = true;
    await patch("unrecorded", image("2.0.0"));
    await until("unrecorded", (_, list) => list.length === 2);
    await serve("unrecorded", "2.0.0", "b");
    await served(
      "unrecorded",
      ({ status }, list) => list[0]?.status === "succeeded" && status?.phase === "running",
    );
    expect((await get("unrecorded")).status?.deployments?.[0]?.recorded).toBeUndefined();
    rows = [];
    ledgerIsDown = false;
    await newest("unrecorded", "succeeded", 2);
    expect(recorded("unrecorded")).toEqual(["succeeded"]);
  });

  test("a restarted operator records what the one before could not, under the same id", async () => {
    ledgerIsDown = true;
    await patch("unrecorded", image("3.0.0"));
    const { status } = await until("unrecorded", (_, list) => list.length === 3);
    await operator.stop();
    ledgerIsDown = false;
    rows = [];
    operator = await start();
    const { id } = await newest("unrecorded", "in_progress", 3);
    expect(id).toBe(status?.deployments?.[0]?.id);
    expect(recorded("unrecorded")).toEqual(["in_progress"]);
  });

  test("ten are kept, and the next waits until the ledger has one of them", async () => {
    ledgerIsDown = true;
    // Three are there; of those one may go, since the last that succeeded stays.
    for (let tag = 0; tag < 8; tag += 1) {
      await patch("unrecorded", image(`many-${tag}`));
      await until("unrecorded", (_, list) => list[0]?.image.reference.endsWith(`many-${tag}`) === true);
    }
    await patch("unrecorded", image("waits"));
    const waiting = await until(
      "unrecorded",
      ({ status }) => status?.conditions?.[0]?.reason === "LedgerUnavailable",
    );
    expect(waiting.status?.deployments).toHaveLength(10);
    expect(waiting.status?.deployments?.some(({ image: { reference } }) => reference.endsWith("waits"))).toBe(
      false,
    );
    ledgerIsDown = false;
    await until("unrecorded", (_, list) => list[0]?.image.reference.endsWith("waits") === true);
  }, 240_000);
});

test("Secrets of no listed deployment are deleted, those of a listed one and users' own stay", async () => {
  const labels = { "slipway.dev/project": "tidy", "app.kubernetes.io/managed-by": "slipway" };
  const secret = (name: string, own = true) =>
    cluster.client.create<KubernetesObject>(resources.secrets, {
      metadata: { namespace, name, ...(own ? { labels } : {}) },
    });
  const names = ["tidy-env-00000001", "tidy-env-00000002", "tidy-env-00000003"];
  for (const name of names) {
    await secret(name);
  }
  await secret("tidy-env-00000004", false);
  await running("tidy", { envsFrom: [{ name: "tidy-env-00000001" }] });
  await patch("tidy", { envsFrom: [{ name: "tidy-env-00000002" }] });
  await newest("tidy", "in_progress", 2);

  const present = async () => {
    const all = await cluster.client.listAll<KubernetesObject>(resources.secrets, { namespace });
    return all.map(({ metadata }) => metadata?.name).filter((name) => name?.startsWith("tidy-"));
  };
  await touch("tidy");
  expect(await present()).toHaveLength(4);
  clock.aheadMs = 601_000;
  await touch("tidy");
  await eventually(async () => (await present()).length === 3);
  expect((await present()).sort()).toEqual(["tidy-env-00000001", "tidy-env-00000002", "tidy-env-00000004"]);
});

test("an unchanged platform sends the ledger no query and writes nothing, after a restart too", async () => {
  for (const name of ["first", "sleeper"]) {
    await until(name, ({ status }) => status?.phase === "running");
  }
  const before = await untilUnchanged(cluster);
  rows = [];
  await operator.stop();
  operator = await start();
  await new Promise((resolve) => setTimeout(resolve, 6_000));
  const written = (await cluster.operatorWrites())
    .slice(before)
    .filter((write) => /first|sleeper/.test(write));
  expect(written).toEqual([]);
  expect(rows.filter(({ project_id }) => ["first", "sleeper"].includes(project_id))).toEqual([]);
});

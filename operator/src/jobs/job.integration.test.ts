import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  conditionsOf,
  eventually,
  exists,
  startCluster,
  type TestCluster,
  type TestOperator,
} from "../../../test/kit/operator/harness.ts";
import { TestJobs } from "../../../test/kit/operator/jobs.ts";
import {
  makeProvisionedNamespace,
  startProjectController,
} from "../../../test/kit/operator/project-controller.ts";
import { projectResource } from "../resources.ts";

const namespace = "slipway-org-alpha";

let cluster: TestCluster;
let operator: TestOperator;
let jobs: TestJobs;

beforeAll(async () => {
  cluster = await startCluster();
  operator = await startProjectController(cluster, {
    registryLogin: async () => ({
      host: "1.dkr.ecr.eu-west-1.amazonaws.com",
      username: "AWS",
      password: "token",
      expiresAt: new Date(Date.now() + 12 * 3_600_000),
    }),
    closeMetering: async () => true,
  });
  await makeProvisionedNamespace(cluster, namespace);
  jobs = new TestJobs(cluster, namespace);
});
afterAll(async () => {
  await operator.stop();
  await cluster.stop();
});

describe("a job", () => {
  test("runs once its schedule is in place, and reports the resources of a run", async () => {
    const project = await jobs.running("first");
    expect(await jobs.cronJob("first")).toMatchObject({
      metadata: { ownerReferences: [{ kind: "Project", uid: project.metadata.uid, controller: true }] },
      spec: { schedule: "* * * * *", suspend: false, timeZone: "Etc/UTC", concurrencyPolicy: "Forbid" },
    });
    expect(project.status).toMatchObject({
      observedGeneration: project.metadata.generation,
      plan: "job-basic",
      maxCpu: "500m",
      maxMemory: "512Mi",
      image: { reference: "registry.example/team/job:1.0.0" },
      deployments: [{ status: "succeeded", settings: { plan: "job-basic" } }],
    });
    expect(project.status?.domain).toBeUndefined();
    const conditions = await conditionsOf(cluster.client, jobs.ref("first"));
    expect(conditions.toSorted()).toEqual([
      "Accepted=True/Accepted",
      "Progressing=False/Settled",
      "Ready=True/Ready",
      "ScheduleActive=True/Scheduled",
    ]);
  });

  test("has no child but its CronJob", async () => {
    for (const resource of [resources.deployments, resources.services, resources.networkPolicies]) {
      expect(await exists(cluster.client, resource, jobs.ref("first"))).toBe(false);
    }
  });

  test("gets its CronJob back when it is deleted, and its schedule when it is edited", async () => {
    const before = await jobs.cronJob("first");
    await cluster.client.delete(resources.cronJobs, jobs.ref("first"));
    await eventually(async () => {
      const live = await cluster.client.getOrUndefined(resources.cronJobs, jobs.ref("first"));
      return live && live.metadata?.uid !== before.metadata?.uid;
    });
    await cluster.client.patch(resources.cronJobs, jobs.ref("first"), { spec: { schedule: "0 0 1 1 *" } });
    await eventually(async () => (await jobs.cronJob("first")).spec.schedule === "* * * * *");
  });

  // Shows: docs/jobs.md#two-operators-and-kubectl: an unchanged job writes nothing
  test("writes nothing once it is settled", async () => {
    await jobs.phase("first", "running");
    await jobs.unchanged();
    const before = (await cluster.operatorWrites()).length;
    // What the CronJob controller writes for every occurrence.
    const status = { lastScheduleTime: new Date().toISOString() };
    await cluster.client.patch(resources.cronJobs, jobs.ref("first"), { status }, { subresource: "status" });
    operator.catalogChanged();
    await jobs.unchanged();
    expect((await cluster.operatorWrites()).slice(before)).toEqual([]);
  });

  test("waits for a Secret that it names", async () => {
    await jobs.create("secretive", { envsFrom: [{ name: "later" }] });
    await jobs.condition("secretive", "Accepted=False/SecretNotFound");
    expect((await jobs.get("secretive")).status?.phase).toBe("creating");
    expect(await exists(cluster.client, resources.cronJobs, jobs.ref("secretive"))).toBe(false);
    await cluster.client.create(resources.secrets, {
      metadata: jobs.ref("later"),
      stringData: {},
    } as KubernetesObject);
    await jobs.phase("secretive", "running");
  });

  test("that is built from Git is refused", async () => {
    const github = { repositoryOwner: "o", repositoryName: "r", branch: "main", autoDeploy: false };
    await jobs.create("built", { image: undefined, github });
    await jobs.condition("built", "Accepted=False/TypeNotSupported");
    await cluster.client.delete(projectResource, jobs.ref("built"));
    await jobs.deleted(projectResource, "built");
  });

  test("with a volume runs before the volume is bound, which its first run causes", async () => {
    const storage = { persistent: true, capacity: 3, dirPathToPersist: "/data" };
    await jobs.running("kept", { storage });
    await jobs.condition("kept", "StorageReady=False/VolumePending");
    expect(await cluster.client.get(resources.persistentVolumeClaims, jobs.ref("kept"))).toMatchObject({
      spec: { resources: { requests: { storage: "3Gi" } } },
    });
    const status = { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "3Gi" } };
    const options = { subresource: "status" } as const;
    await cluster.client.patch(resources.persistentVolumeClaims, jobs.ref("kept"), { status }, options);
    await jobs.condition("kept", "StorageReady=True/VolumeBound");
  });
});

describe("Secrets of a job", () => {
  const labels = { "slipway.dev/project": "secured", "app.kubernetes.io/managed-by": "slipway" };
  const secret = (name: string, data: Record<string, string> = {}, type = "Opaque") =>
    cluster.client.create<KubernetesObject>(resources.secrets, {
      metadata: { ...jobs.ref(name), labels },
      type,
      data: Object.fromEntries(
        Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
      ),
    } as KubernetesObject);

  test("become its own, and a login to Amazon's registry is created before the first pull", async () => {
    await secret("secured-env-00000001");
    const keys = { accessKeyId: "a", secretAccessKey: "b", region: "eu-west-1", accountId: "1" };
    await secret("secured-pull-00000001", keys, "slipway.dev/aws-registry");
    const { metadata } = await jobs.running("secured", {
      envsFrom: [{ name: "secured-env-00000001" }],
      image: {
        url: "1.dkr.ecr.eu-west-1.amazonaws.com/job:1",
        isPublic: false,
        awsCredentialsRef: { name: "secured-pull-00000001" },
      },
    });
    for (const name of ["secured-env-00000001", "secured-pull-00000001", "secured-registry"]) {
      const { metadata: found } = await cluster.client.get(resources.secrets, jobs.ref(name));
      expect(found?.ownerReferences).toMatchObject([{ kind: "Project", uid: metadata.uid }]);
    }
    await jobs.condition("secured", "RegistryReady=True/RegistryLoggedIn");
    expect((await jobs.cronJob("secured")).spec.jobTemplate.spec.template.spec).toMatchObject({
      imagePullSecrets: [{ name: "secured-registry" }],
      containers: [{ envFrom: [{ secretRef: { name: "secured-env-00000001" } }] }],
    });
  });

  test("that a run still pulls with stay when its image changes", async () => {
    await jobs.makeJob("secured", "secured-1");
    await jobs.patch("secured", {
      image: { url: "registry.example/job:1", isPublic: true, awsCredentialsRef: null },
    });
    await eventually(async () => (await jobs.get("secured")).status?.deployments?.length === 2);
    await jobs.unchanged();
    expect(await exists(cluster.client, resources.secrets, jobs.ref("secured-registry"))).toBe(true);
    await cluster.client.patch(resources.jobs, jobs.ref("secured-1"), { metadata: { finalizers: null } });
    await cluster.client.delete(resources.jobs, jobs.ref("secured-1"));
    await jobs.patch("secured", { description: "another description" });
    await jobs.deleted(resources.secrets, "secured-registry");
  });
});

describe("a change", () => {
  beforeAll(async () => {
    await jobs.running("changed");
    await jobs.makeJob("changed", "changed-1");
  });

  test("of schedule, image and plan reaches the CronJob, and no run under way", async () => {
    const before = await cluster.client.get(resources.jobs, jobs.ref("changed-1"));
    await jobs.patch("changed", {
      plan: "job-premium",
      image: { url: "registry.example/team/job:2.0.0", isPublic: true },
      job: { cron: "0 3 * * *" },
    });
    await eventually(async () => (await jobs.cronJob("changed")).spec.schedule === "0 3 * * *");
    const { spec } = await jobs.cronJob("changed");
    expect(spec.jobTemplate.metadata.annotations["slipway.dev/plan"]).toBe("job-premium");
    expect(spec.jobTemplate.spec.template.spec.containers[0]).toMatchObject({
      image: "registry.example/team/job:2.0.0",
      resources: { limits: { cpu: "1" } },
    });
    const after = await cluster.client.get(resources.jobs, jobs.ref("changed-1"));
    expect(after.metadata?.resourceVersion).toBe(before.metadata?.resourceVersion);
  });

  test("of a run's template is a deployment, and the previous one can be rolled back to", async () => {
    const deployments = await eventually(async () => {
      const { status } = await jobs.get("changed");
      return status?.deployments?.length === 2 && status.deployments;
    });
    expect(deployments).toMatchObject([
      { status: "succeeded", updatedImage: true, settings: { plan: "job-premium" } },
      { status: "succeeded", settings: { plan: "job-basic" } },
    ]);
  });

  test("of the schedule alone is none", async () => {
    await jobs.patch("changed", { job: { cron: "0 4 * * *" } });
    await eventually(async () => (await jobs.cronJob("changed")).spec.schedule === "0 4 * * *");
    expect((await jobs.get("changed")).status?.deployments).toHaveLength(2);
  });
});

describe("a schedule", () => {
  beforeAll(() => jobs.running("resting"));

  test("is suspended while the project is paused, even when its spec is rejected", async () => {
    await jobs.patch("resting", { paused: true, envsFrom: [{ name: "absent" }] });
    await eventually(async () => (await jobs.cronJob("resting")).spec.suspend);
    await jobs.condition("resting", "ScheduleActive=False/Paused");
    await jobs.patch("resting", { envsFrom: null });
    await jobs.condition("resting", "Ready=False/Paused");
    await jobs.phase("resting", "stopped");
  });

  test("continues when it is resumed", async () => {
    await jobs.patch("resting", { paused: false });
    await jobs.phase("resting", "running");
    expect((await jobs.cronJob("resting")).spec.suspend).toBe(false);
    expect((await jobs.get("resting")).status?.deployments).toHaveLength(1);
  });

  test("that is closed creates no Job any more, until it is opened again", async () => {
    await jobs.patch("resting", { job: { closedAt: new Date().toISOString().replace(/\.\d+/, "") } });
    await jobs.condition("resting", "ScheduleActive=False/ScheduleClosed");
    await jobs.condition("resting", "Ready=False/ScheduleClosed");
    expect((await jobs.cronJob("resting")).spec.suspend).toBe(true);
    expect((await jobs.get("resting")).status?.phase).toBe("stopped");
    await jobs.patch("resting", { job: { closedAt: null } });
    await jobs.phase("resting", "running");
    expect((await jobs.cronJob("resting")).spec.suspend).toBe(false);
  });

  test("that is edited keeps what others write in the status", async () => {
    const job = { activeRun: "resting-1", missed: 3 };
    await jobs.patchJobStatus("resting", job);
    await jobs.patch("resting", { job: { cron: "5 5 * * *" } });
    await eventually(async () => {
      const { status, metadata } = await jobs.get("resting");
      return status?.observedGeneration === metadata.generation;
    });
    expect((await jobs.get("resting")).status?.job).toMatchObject(job);
  });
});

test("pods of runs are none of the project's instances", async () => {
  await jobs.running("busy");
  // What was recorded in the ledger is written into the status, a moment later.
  await jobs.unchanged();
  const project = await jobs.get("busy");
  await jobs.makePod("busy", "busy-1-abcde");
  await jobs.unchanged();
  expect((await jobs.get("busy")).metadata.resourceVersion).toBe(project.metadata.resourceVersion);
});

import { resources } from "@slipway/controller-runtime";
import type { JobRun } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
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
import { jobRunResource, projectResource } from "../resources.ts";

const namespace = "slipway-org-alpha";

let cluster: TestCluster;
let operator: TestOperator;
let jobs: TestJobs;
/** Whether the last charge of storage is recorded. */
let metered = true;
const closed: string[] = [];

beforeAll(async () => {
  cluster = await startCluster();
  operator = await startProjectController(cluster, {
    registryLogin: () => Promise.reject(new Error("nobody logs in here")),
    closeMetering: async ({ metadata }) => {
      if (metered) {
        closed.push(metadata.name);
      }
      return metered;
    },
  });
  await makeProvisionedNamespace(cluster, namespace);
  jobs = new TestJobs(cluster, namespace);
});
afterAll(async () => {
  await operator.stop();
  await cluster.stop();
});

const charged: JobRun["status"] = { phase: "succeeded", chargedAt: "2026-01-01T00:01:00Z" };
const refused: JobRun["status"] = {
  conditions: [
    {
      type: "Admitted",
      status: "False",
      reason: "Overlap",
      message: "",
      observedGeneration: 1,
      lastTransitionTime: "2026-01-01T00:00:00Z",
    },
  ],
};

describe("a job that is deleted", () => {
  test("stops its schedule immediately, and waits until its runs are charged", async () => {
    await jobs.running("ending");
    const job = await jobs.makeJob("ending", "ending-1");
    await jobs.makePod("ending", "ending-1-abcde", job);
    await jobs.makeRun("ending", "ending-1", { phase: "running" });
    await jobs.makeRun("ending", "ending-0", refused);
    await cluster.client.delete(projectResource, jobs.ref("ending"));
    await jobs.condition("ending", "Terminating=True/JobRunsPending");
    await jobs.condition("ending", "ScheduleActive=False/ScheduleClosed");
    expect((await jobs.cronJob("ending")).spec.suspend).toBe(true);

    await jobs.patchRunStatus("ending-1", { phase: "succeeded" });
    await jobs.unchanged();
    expect(await exists(cluster.client, resources.jobs, jobs.ref("ending-1"))).toBe(true);

    await jobs.patchRunStatus("ending-1", charged);
    await jobs.deleted(projectResource, "ending");
    await jobs.deleted(resources.cronJobs, "ending");
    await jobs.deleted(resources.jobs, "ending-1");
    await jobs.deleted(resources.pods, "ending-1-abcde");
    await jobs.deleted(jobRunResource, "ending-1");
    await jobs.deleted(jobRunResource, "ending-0");
  });

  test("waits for a run that has the slot and no JobRun yet, and for one that was never reconciled", async () => {
    await jobs.running("slotted");
    await jobs.patchJobStatus("slotted", { activeRun: "slotted-1" });
    await cluster.client.delete(projectResource, jobs.ref("slotted"));
    await jobs.condition("slotted", "Terminating=True/JobRunsPending");
    await jobs.makeRun("slotted", "slotted-by-hand", undefined, "manual");
    await jobs.patchJobStatus("slotted", { activeRun: null });
    await jobs.unchanged();
    await jobs.condition("slotted", "Terminating=True/JobRunsPending");
    await jobs.patchRunStatus("slotted-by-hand", refused);
    await jobs.deleted(projectResource, "slotted");
    await jobs.deleted(jobRunResource, "slotted-by-hand");
  });

  test("leaves another job's runs alone, and deletes Jobs that were never admitted", async () => {
    await jobs.running("leaving");
    await jobs.running("leaving-not");
    await jobs.makeJob("leaving", "leaving-1", false);
    await jobs.makeJob("leaving-not", "leaving-not-1");
    await jobs.makeRun("leaving-not", "leaving-not-1", { phase: "running" });
    await cluster.client.delete(projectResource, jobs.ref("leaving"));
    await jobs.deleted(projectResource, "leaving");
    await jobs.deleted(resources.jobs, "leaving-1");
    expect(await exists(cluster.client, resources.jobs, jobs.ref("leaving-not-1"))).toBe(true);
    expect(await exists(cluster.client, jobRunResource, jobs.ref("leaving-not-1"))).toBe(true);
  });

  test("with a volume is deleted only once the storage's last charge is recorded", async () => {
    metered = false;
    const storage = { persistent: true, capacity: 1, dirPathToPersist: "/data" };
    await jobs.running("stored", { storage });
    await cluster.client.delete(projectResource, jobs.ref("stored"));
    // Nothing removes the protection of a volume that no pod uses here.
    await cluster.client.patch(resources.persistentVolumeClaims, jobs.ref("stored"), {
      metadata: { finalizers: null },
    });
    await jobs.deleted(resources.persistentVolumeClaims, "stored");
    await jobs.condition("stored", "Terminating=True/DeletingChildren");
    expect(closed).not.toContain("stored");
    metered = true;
    await jobs.deleted(projectResource, "stored");
    expect(closed).toContain("stored");
  });
});

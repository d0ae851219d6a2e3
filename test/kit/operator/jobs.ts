/** Scheduled jobs in a cluster without controllers: what tests do with them, and what controllers would create for them. */

import { type KubernetesObject, type ObjectRef, type Resource, resources } from "@slipway/controller-runtime";
import type { JobRun, Project } from "@slipway/crds";
import { jobRunResource, projectResource } from "../../../operator/src/resources.ts";
import { conditionsOf, eventually, type TestCluster, untilUnchanged } from "./harness.ts";
import { exampleJob } from "./projects.ts";

/** A CronJob, as far as tests read it. */
export interface CronJobView extends KubernetesObject {
  spec: {
    schedule: string;
    suspend: boolean;
    jobTemplate: {
      metadata: { annotations: Record<string, string>; labels: Record<string, string> };
      spec: {
        template: {
          spec: { containers: { image: string; resources: { limits: Record<string, string> } }[] };
        };
      };
    };
  };
}

/** The jobs of one namespace. */
export class TestJobs {
  readonly #cluster: TestCluster;
  readonly namespace: string;

  constructor(cluster: TestCluster, namespace: string) {
    this.#cluster = cluster;
    this.namespace = namespace;
  }

  get #client() {
    return this.#cluster.client;
  }

  ref(name: string): ObjectRef & { namespace: string } {
    return { namespace: this.namespace, name };
  }

  get(name: string): Promise<Project> {
    return this.#client.get<Project>(projectResource, this.ref(name));
  }

  cronJob(name: string): Promise<CronJobView> {
    return this.#client.get<CronJobView>(resources.cronJobs, this.ref(name));
  }

  create(name: string, spec: Partial<Project["spec"]> = {}): Promise<Project> {
    return this.#client.create<Project>(projectResource, exampleJob(this.ref(name), spec));
  }

  async patch(name: string, spec: object): Promise<void> {
    await this.#client.patch(projectResource, this.ref(name), { spec });
  }

  /** Writes into `status.job`, as the controller of runs does. */
  async patchJobStatus(name: string, job: object | null): Promise<void> {
    await this.#client.patch(projectResource, this.ref(name), { status: { job } }, { subresource: "status" });
  }

  phase(name: string, expected: string): Promise<Project> {
    return eventually(async () => {
      const project = await this.get(name);
      return project.status?.phase === expected && project;
    });
  }

  async condition(name: string, expected: string): Promise<void> {
    await eventually(async () => (await conditionsOf(this.#client, this.ref(name))).includes(expected));
  }

  async running(name: string, spec: Partial<Project["spec"]> = {}): Promise<Project> {
    await this.create(name, spec);
    return await this.phase(name, "running");
  }

  async deleted(resource: Resource, name: string): Promise<void> {
    await eventually(async () => (await this.#client.getOrUndefined(resource, this.ref(name))) === undefined);
  }

  /** Waits until the operator has nothing left to do. */
  async unchanged(): Promise<void> {
    await untilUnchanged(this.#cluster);
  }

  /** A Job as the CronJob controller creates it, or as it is once its run is admitted. */
  async makeJob(project: string, name: string, admitted = true): Promise<KubernetesObject> {
    const { metadata, spec } = await this.cronJob(project);
    const { jobTemplate } = spec;
    const controller = controllerReference("CronJob", project, metadata?.uid);
    return await this.#client.create<KubernetesObject>(resources.jobs, {
      metadata: {
        ...this.ref(name),
        ...jobTemplate.metadata,
        finalizers: admitted ? ["slipway.dev/jobrun"] : [],
        ownerReferences: [controller],
      },
      spec: { ...jobTemplate.spec, suspend: !admitted },
    } as KubernetesObject);
  }

  /** A pod as the Job controller creates it. */
  async makePod(project: string, name: string, job?: KubernetesObject): Promise<void> {
    const controller = job && controllerReference("Job", job.metadata?.name ?? "", job.metadata?.uid);
    await this.#client.create(resources.pods, {
      metadata: {
        ...this.ref(name),
        labels: { "slipway.dev/project": project, "slipway.dev/type": "job" },
        finalizers: ["slipway.dev/jobrun"],
        ...(controller ? { ownerReferences: [controller] } : {}),
      },
      spec: { containers: [{ name: "app", image: "registry.example/team/job:1.0.0" }] },
    } as KubernetesObject);
  }

  /** A JobRun as the controller of runs creates it, or a manual one. */
  async makeRun(
    project: string,
    name: string,
    status: JobRun["status"],
    trigger: "schedule" | "manual" = "schedule",
  ): Promise<void> {
    const marks = { labels: { "slipway.dev/project": project }, finalizers: ["slipway.dev/jobrun"] };
    await this.#client.create<JobRun>(jobRunResource, {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "JobRun",
      metadata: { ...this.ref(name), ...(trigger === "schedule" ? marks : {}) },
      spec: { projectRef: { name: project }, trigger, scheduledAt: "2026-01-01T00:00:00Z" },
    });
    if (status) {
      await this.patchRunStatus(name, status);
    }
  }

  async patchRunStatus(name: string, status: JobRun["status"]): Promise<void> {
    await this.#client.patch(jobRunResource, this.ref(name), { status }, { subresource: "status" });
  }
}

function controllerReference(kind: string, name: string, uid = "") {
  return { apiVersion: "batch/v1", kind, name, uid, controller: true };
}

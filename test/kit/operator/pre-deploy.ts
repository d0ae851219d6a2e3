/** What the Job controller, a kubelet and the garbage collector do for Jobs of commands, for tests on an apiserver that has none. */

import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { finalizers, labels } from "@slipway/crds";
import { JOB_NAME } from "../../../operator/src/jobs/runs/cluster.ts";

type TestJob = KubernetesObject & {
  spec: {
    suspend?: boolean;
    template: { metadata: { labels?: Record<string, string> }; spec: { containers: { image: string }[] } };
  };
  status?: { conditions?: { type: string; status: string }[] };
};
type TestPod = KubernetesObject & { status?: { phase?: string; containerStatuses?: unknown[] } };

/** How the container of a pod ends; undefined while it runs. */
export type PodEnd = { exitCode: number; message?: string; reason?: string; podReason?: string } | undefined;

export class JobPlayer {
  readonly #client: KubeClient;
  readonly #namespace: string;
  readonly #label: string;
  /** Names of Jobs, in the order in which their pods have begun. */
  readonly begun: string[] = [];
  readonly #started = new Map<string, string>();
  /** Most pods of one project that ran at the same moment. */
  mostConcurrent = 0;
  /** Decides whether the pod of a Job may begin. */
  mayBegin: (job: string) => boolean = () => true;
  /** Decides how the pod of a Job ends, by the Job's image. */
  end: (image: string, job: string) => PodEnd = () => ({ exitCode: 0 });

  /** @param label of the Jobs that it plays, with the project as its value */
  constructor(client: KubeClient, namespace: string, label: string = labels.preDeploy) {
    this.#client = client;
    this.#namespace = namespace;
    this.#label = label;
  }

  /** Plays for as long as a test runs. @returns how to stop */
  play(): () => Promise<void> {
    let isOver = false;
    const playing = (async () => {
      while (!isOver) {
        // Of objects that have changed since.
        await this.#step().catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    return async () => {
      isOver = true;
      await playing;
    };
  }

  /** Those of a project that exist. */
  jobs(project: string): Promise<TestJob[]> {
    const labelSelector = `${this.#label}=${project}`;
    return this.#client.listAll<TestJob>(resources.jobs, { namespace: this.#namespace, labelSelector });
  }

  async #step(): Promise<void> {
    const selection = { namespace: this.#namespace, labelSelector: this.#label };
    const jobs = await this.#client.listAll<TestJob>(resources.jobs, selection);
    const pods = await this.#client.listAll<TestPod>(resources.pods, selection);
    this.#count(pods);
    for (const job of jobs) {
      const pod = pods.find(({ metadata }) => metadata?.ownerReferences?.[0]?.uid === job.metadata?.uid);
      await (job.metadata?.deletionTimestamp ? this.#remove(job, pod) : this.#run(job, pod));
    }
    const orphans = pods.filter(({ metadata }) =>
      jobs.every((job) => job.metadata?.uid !== metadata?.ownerReferences?.[0]?.uid),
    );
    for (const pod of orphans) {
      await this.#delete(pod);
    }
  }

  #count(pods: readonly TestPod[]): void {
    const running = pods
      .filter(({ status }) => status?.phase === "Pending" || status?.phase === "Running")
      .map(({ metadata }) => metadata?.labels?.[this.#label] ?? "");
    for (const project of new Set(running)) {
      const count = running.filter((other) => other === project).length;
      this.mostConcurrent = Math.max(this.mostConcurrent, count);
    }
  }

  async #run(job: TestJob, pod: TestPod | undefined): Promise<void> {
    const { name = "", uid = "" } = job.metadata ?? {};
    if (job.spec.suspend || job.status?.conditions?.some(({ status }) => status === "True")) {
      return;
    }
    if (!pod && !this.mayBegin(name)) {
      return;
    }
    if (!pod) {
      const owner = { apiVersion: "batch/v1", kind: "Job", name, uid, controller: true };
      const { labels: own, ...template } = job.spec.template.metadata;
      const named = { labels: { ...own, [JOB_NAME]: name }, name: `${name}-pod`, namespace: this.#namespace };
      const metadata = { ...template, ...named };
      const { spec } = job.spec.template;
      await this.#client.create<KubernetesObject>(resources.pods, {
        metadata: { ...metadata, ownerReferences: [owner] },
        spec,
      } as KubernetesObject);
      this.begun.push(name);
      this.#started.set(name, now());
      const running = { running: { startedAt: now() } };
      await this.#writePod(`${name}-pod`, { phase: "Running", containerStatuses: [container(running)] });
      return;
    }
    const isStopped = pod.metadata?.deletionTimestamp !== undefined;
    const end = isStopped
      ? { exitCode: 143 }
      : this.end(job.spec.template.spec.containers[0]?.image ?? "", name);
    if (end) {
      await this.#end(job, end);
    }
  }

  async #end(
    job: TestJob,
    { exitCode, message = "", reason, podReason }: NonNullable<PodEnd>,
  ): Promise<void> {
    const { name = "" } = job.metadata ?? {};
    const isComplete = exitCode === 0;
    const how = reason ?? (isComplete ? "Completed" : "Error");
    const terminated = {
      exitCode,
      message,
      reason: how,
      startedAt: this.#started.get(name) ?? now(),
      finishedAt: now(),
    };
    await this.#writePod(`${name}-pod`, {
      phase: isComplete ? "Succeeded" : "Failed",
      containerStatuses: [container({ terminated })],
      ...(podReason === undefined ? {} : { reason: podReason }),
    });
    const types = isComplete ? ["SuccessCriteriaMet", "Complete"] : ["FailureTarget", "Failed"];
    const conditions = types.map((type) => ({ type, status: "True", lastTransitionTime: now() }));
    const status = {
      startTime: now(),
      conditions,
      ...(isComplete ? { completionTime: now(), succeeded: 1 } : { failed: 1 }),
    };
    const ref = { namespace: this.#namespace, name };
    await this.#client.patch(resources.jobs, ref, { status }, { subresource: "status" });
  }

  /** Foreground: the pod first. */
  async #remove(job: TestJob, pod: TestPod | undefined): Promise<void> {
    if (pod) {
      await this.#delete(pod);
      return;
    }
    const ref = { namespace: this.#namespace, name: job.metadata?.name ?? "" };
    const kept = (job.metadata?.finalizers ?? []).filter((name) => name === finalizers.jobRun);
    await this.#client.patch(resources.jobs, ref, { metadata: { finalizers: kept } });
  }

  async #delete({ metadata }: TestPod): Promise<void> {
    const ref = { namespace: this.#namespace, name: metadata?.name ?? "" };
    await this.#client.delete(resources.pods, ref, { gracePeriodSeconds: 0 });
  }

  async #writePod(name: string, status: object): Promise<void> {
    const ref = { namespace: this.#namespace, name };
    await this.#client.patch(resources.pods, ref, { status }, { subresource: "status" });
  }
}

const now = (): string => `${new Date().toISOString().slice(0, 19)}Z`;

const container = (state: object) => ({
  name: "app",
  image: "app",
  imageID: "",
  restartCount: 0,
  ready: false,
  state,
});

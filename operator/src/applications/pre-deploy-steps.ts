/** Runs the pre-deploy command of a project's newest deployment, once, as a Job that its rollout waits for. */

import {
  controllerOf,
  controllerReference,
  deleteSeen,
  isAlreadyExists,
  isInTerminalPhase,
  type KubeClient,
  type KubernetesObject,
  resources,
  timestamp,
} from "@slipway/controller-runtime";
import { type Deployment, labels, type Project, type ProjectStatus } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { Job } from "../jobs/runs/cluster.ts";
import { readTail } from "../logs/run-logs.ts";
import { isPreDeployDone, mayRollOut, timeoutOf } from "../projects/deployments/pre-deploy.ts";
import type { ProjectContext } from "../projects/kind.ts";
import type { Finding } from "../projects/status.ts";
import { setDeployments } from "../projects/status-fields.ts";
import type { Pod, ProjectStores } from "../projects/stores.ts";
import { projectResource } from "../resources.ts";
import type { HttpApp } from "./app.ts";
import { settingsHash } from "./desired/deployment.ts";
import { preDeployJob, preDeployJobName } from "./desired/pre-deploy-job.ts";
import { appStatus, type PodView } from "./pod-problem.ts";
import { keptLines, observeRun, progressOf } from "./pre-deploy.ts";

/** Poll interval for the end of what a stopped run has left, in milliseconds. */
const ENDING_POLL_INTERVAL_MS = 1_000;

/** Longest read of a log, in milliseconds. */
const LOG_TIMEOUT_MS = 5_000;

/** Why the wanted version has no instances yet. */
export interface RolloutGate {
  /** Where its command is; undefined once that has failed. */
  progress?: Finding;
  /** Milliseconds until it is to be reconciled again, in any case. */
  againInMs?: number;
}

export interface PreDeployDependencies {
  client: KubeClient;
  clock: Clock;
  stores: Pick<ProjectStores, "preDeployJobs" | "preDeployPods">;
}

export class PreDeploySteps {
  readonly #deps: PreDeployDependencies;

  constructor(deps: PreDeployDependencies) {
    this.#deps = deps;
  }

  /**
   * Records how far the newest deployment's command is, for any spec.
   * @returns why it has failed, when it has just ended so
   */
  async observe(project: Project, { status, event, signal }: ProjectContext): Promise<string | undefined> {
    const [newest, ...older] = status.deployments ?? [];
    const before = newest?.preDeploy;
    if (!newest || !before || isPreDeployDone(newest) || before.status === "failed") {
      return undefined;
    }
    const job = this.#jobOf(project, newest);
    if (!job) {
      return undefined;
    }
    const context = { timeoutSeconds: timeoutOf(project.spec), now: timestamp(this.#deps.clock.now()) };
    const seen = observeRun(job, this.#podOf(job), context);
    const isOver = seen.run.finishedAt !== undefined;
    // The watch of pods may be behind that of Jobs.
    const pod = isOver ? await this.#livePodOf(job, signal) : undefined;
    const { run, failure } = isOver ? observeRun(job, pod, context) : seen;
    if (failure !== undefined && newest.status === "superseded") {
      // A pause has stopped it.
      return undefined;
    }
    const lines = await this.#lines(pod, signal);
    const preDeploy = { commandHash: before.commandHash, ...run, ...lines };
    setDeployments(status, [{ ...newest, preDeploy }, ...older]);
    if (failure !== undefined) {
      event("Warning", "PreDeployFailed", failure);
    }
    return failure;
  }

  /**
   * Runs the command of the wanted version where that comes first, and stops every other one.
   * @returns undefined once instances of the wanted version may run
   */
  async resolve(
    project: Project,
    wanted: HttpApp,
    { status, signal }: { status: ProjectStatus; signal: AbortSignal },
  ): Promise<RolloutGate | undefined> {
    const hash = settingsHash(wanted);
    const [newest] = status.deployments ?? [];
    const isOpen = mayRollOut(project.spec, hash, newest);
    const isPending = !isOpen && newest?.settingsHash === hash && newest.status === "in_progress";
    const others = await this.stopOutdated(project, status, signal);
    if (isOpen) {
      return undefined;
    }
    if (!isPending || project.spec.paused) {
      return {};
    }
    if (!isRecorded(project, newest)) {
      // Its name is the deployment's: no Job is created for one that a process that ends now would begin again under another id.
      return { progress: progressOf(undefined), againInMs: 1 };
    }
    if (others > 0) {
      return { progress: ENDING, againInMs: ENDING_POLL_INTERVAL_MS };
    }
    return this.#run(project, wanted, newest, signal);
  }

  /**
   * Deletes every Job but that of the newest deployment, and that one too if a pause has ended it.
   * @returns how many of them still exist
   */
  async stopOutdated(
    project: Project,
    { deployments = [] }: ProjectStatus,
    signal: AbortSignal,
  ): Promise<number> {
    const [newest] = deployments;
    const kept = newest && newest.status !== "superseded" ? this.#jobOf(project, newest) : undefined;
    return this.clear(project, signal, kept);
  }

  /** Deletes the Jobs of a project, but one. @returns how many of them still exist */
  async clear(project: Project, signal: AbortSignal, but?: Job): Promise<number> {
    const others = this.#jobs(project).filter(({ metadata }) => metadata.uid !== but?.metadata.uid);
    for (const job of others.filter(({ metadata }) => metadata.deletionTimestamp === undefined)) {
      // Its pod first: it exists for as long as that runs. Another one of its name is another run.
      await deleteSeen(this.#deps.client, resources.jobs, job, { propagationPolicy: "Foreground", signal });
    }
    return others.length;
  }

  /** Creates the Job, once nothing of another run is left. */
  async #run(
    project: Project,
    wanted: HttpApp,
    deployment: Deployment,
    signal: AbortSignal,
  ): Promise<RolloutGate> {
    const job = this.#jobOf(project, deployment);
    if (job) {
      return job.metadata.deletionTimestamp === undefined
        ? { progress: progressOf(this.#podOf(job)) }
        : { progress: ENDING, againInMs: ENDING_POLL_INTERVAL_MS };
    }
    if (await this.#hasRemains(project, signal)) {
      return { progress: ENDING, againInMs: ENDING_POLL_INTERVAL_MS };
    }
    const { preDeployCommand: command = [] } = project.spec;
    const desired = preDeployJob(wanted, {
      deploymentId: deployment.id,
      settingsHash: deployment.settingsHash,
      command,
      timeoutSeconds: timeoutOf(project.spec),
    });
    const ownerReferences = [controllerReference(project, projectResource)];
    try {
      const created = await this.#deps.client.create<KubernetesObject>(
        resources.jobs,
        { ...desired, metadata: { ...desired.metadata, ownerReferences } },
        { signal },
      );
      this.#deps.stores.preDeployJobs.observe(created as Job);
    } catch (error) {
      // The watch reports it soon.
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
    return { progress: progressOf(undefined) };
  }

  /** Whether a Job of the project, or a pod that has not ended, exists: read live, since the watches may be late. */
  async #hasRemains({ metadata: { name, namespace } }: Project, signal: AbortSignal): Promise<boolean> {
    const { client, stores } = this.#deps;
    const selection = { namespace, labelSelector: `${labels.preDeploy}=${name}`, signal };
    const jobs = await client.listAll<Job>(resources.jobs, selection);
    for (const job of jobs) {
      stores.preDeployJobs.observe(job);
    }
    const pods = await client.listAll<Pod>(resources.pods, selection);
    return jobs.length > 0 || pods.some((pod) => !isInTerminalPhase(pod));
  }

  /** The end of its log; what the kubelet keeps of it when it cannot be read. */
  async #lines(pod: Pod | undefined, signal: AbortSignal) {
    const { name: podName = "", namespace = "" } = pod?.metadata ?? {};
    const terminated = pod && appStatus(pod)?.state?.terminated;
    if (terminated?.startedAt === undefined) {
      return {};
    }
    const until = AbortSignal.any([signal, AbortSignal.timeout(LOG_TIMEOUT_MS)]);
    const text = await readTail(this.#deps.client, { podName, namespace }, until).catch(() => undefined);
    return keptLines(text || (terminated.message ?? ""));
  }

  #jobs({ metadata: { name, namespace, uid } }: Project): Job[] {
    return this.#deps.stores.preDeployJobs
      .byIndex(labels.preDeploy, name)
      .filter((job) => job.metadata.namespace === namespace && controllerOf(job)?.uid === uid);
  }

  #jobOf(project: Project, { id }: Deployment): Job | undefined {
    const name = preDeployJobName(project.metadata.name, id);
    return this.#jobs(project).find(({ metadata }) => metadata.name === name);
  }

  #podOf(job: Job): (Pod & PodView) | undefined {
    const pods = this.#deps.stores.preDeployPods.byIndex(labels.preDeploy, projectOf(job));
    return pods.find((pod) => controllerOf(pod)?.uid === job.metadata.uid);
  }

  async #livePodOf(job: Job, signal: AbortSignal): Promise<Pod | undefined> {
    const { namespace, uid } = job.metadata;
    const selection = { namespace, labelSelector: `${labels.preDeploy}=${projectOf(job)}`, signal };
    const pods = await this.#deps.client.listAll<Pod>(resources.pods, selection);
    return pods.find((pod) => controllerOf(pod)?.uid === uid);
  }
}

const projectOf = ({ metadata }: Job): string => metadata.labels?.[labels.preDeploy] ?? "";

const ENDING: Finding = {
  reason: "RunningPreDeploy",
  message: "The pre-deploy command of the deployment before is being stopped.",
};

/** Whether the stored status has the deployment, with its command. */
const isRecorded = ({ status }: Project, { id }: Deployment): boolean =>
  status?.deployments?.[0]?.id === id && status.deployments[0].preDeploy !== undefined;

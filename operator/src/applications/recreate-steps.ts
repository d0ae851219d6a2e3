/** Replaces the version of a project with a volume: pulls its image first, and rolls back when it does not start. */

import {
  controllerReference,
  deleteSeen,
  isAlreadyExists,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import { annotations, type Deployment, labels, type Project, type ProjectStatus } from "@slipway/crds";
import type { LiveDeployment } from "../projects/pause.ts";
import type { Pod, ProjectStores } from "../projects/stores.ts";
import { projectResource } from "../resources.ts";
import type { PodTemplate } from "../workload/pod.ts";
import type { HttpApp } from "./app.ts";
import { settingsHash } from "./desired/deployment.ts";
import type { PodView } from "./pod-problem.ts";
import type { RolloutGate } from "./pre-deploy-steps.ts";
import {
  chooseVersion,
  imagePullName,
  imagePullPod,
  isPlaced,
  isPulled,
  previousVersion,
} from "./recreate.ts";

/** The version that a project runs. */
export interface Running {
  /** The input of the objects. */
  applied: HttpApp;
  /** The version whose rollout is reported. */
  reported: HttpApp;
  /** The wanted version has failed, and an earlier one has its place. */
  isReturned: boolean;
  /** The wanted version waits for its pre-deploy command, and an earlier one, or none, has its place. */
  gate?: RolloutGate;
}

export class RecreateSteps {
  readonly #client: KubeClient;
  readonly #stores: ProjectStores;

  constructor({ client, stores }: { client: KubeClient; stores: ProjectStores }) {
    this.#client = client;
    this.#stores = stores;
  }

  /**
   * Chooses what a project runs, and has the image of the wanted version pulled where that comes first.
   * @param viewOf the application as it was with an earlier deployment; undefined when it has no values for its references
   */
  async resolve(
    project: Project,
    wanted: HttpApp,
    {
      status: { deployments = [] },
      live,
      instances,
      viewOf,
      signal,
    }: {
      status: ProjectStatus;
      live: LiveDeployment | undefined;
      instances: readonly PodView[];
      viewOf: (previous: Deployment) => HttpApp | undefined;
      signal: AbortSignal;
    },
  ): Promise<Running> {
    const hash = settingsHash(wanted);
    const pull = this.#stores.imagePulls.get(wanted.namespace, imagePullName(wanted, hash));
    const choice = wanted.volume
      ? chooseVersion({
          wanted: hash,
          live: live?.spec?.template?.metadata?.annotations?.[annotations.settingsHash],
          paused: project.spec.paused === true,
          isPlaced: instances.some(isPlaced),
          isPulled: pull !== undefined && isPulled(pull),
          deployments,
        })
      : "wanted";
    // Once the Deployment has the version, its pull is over.
    const isPullPending = choice === "pull" || (choice === "wanted" && !hasTemplateOf(live, hash));
    await this.clear(project, signal, isPullPending ? pull?.metadata.name : undefined);
    const previous = previousVersion(deployments);
    const app = choice === "previous" && previous ? viewOf(previous) : undefined;
    if (app) {
      return { applied: app, reported: app, isReturned: true };
    }
    if (choice === "pull") {
      await this.#pull(project, wanted, hash, pull, signal);
      return { applied: keep(wanted, live), reported: wanted, isReturned: false };
    }
    if (choice === "live") {
      const kept = keep(wanted, live);
      return { applied: kept, reported: kept, isReturned: true };
    }
    return { applied: wanted, reported: wanted, isReturned: false };
  }

  /** What a project runs while its wanted version may not: the version that is live, the last that has succeeded, or none. */
  async hold(
    project: Project,
    wanted: HttpApp,
    gate: RolloutGate,
    {
      status: { deployments = [] },
      live,
      viewOf,
      signal,
    }: {
      status: ProjectStatus;
      live: LiveDeployment | undefined;
      viewOf: (previous: Deployment) => HttpApp | undefined;
      signal: AbortSignal;
    },
  ): Promise<Running> {
    await this.clear(project, signal);
    const previous = live ? undefined : previousVersion(deployments);
    const earlier = previous && viewOf(previous);
    const app = live ? keep(wanted, live) : (earlier ?? { ...wanted, awaitsPreDeploy: true });
    return { applied: app, reported: app, isReturned: false, gate };
  }

  /** Pods that still pull an image for a project. */
  pulling({ metadata: { name, namespace } }: Project): Pod[] {
    return this.#of(name, namespace).filter((pod) => !isPulled(pod));
  }

  /** Deletes the pods that pull images for a project, but one. */
  async clear(
    { metadata: { name: id, namespace } }: Project,
    signal: AbortSignal,
    but?: string,
  ): Promise<void> {
    for (const pod of this.#of(id, namespace)) {
      if (pod.metadata.name !== but && !pod.metadata.deletionTimestamp) {
        // Another one of its name is another pull.
        await deleteSeen(this.#client, resources.pods, pod, { signal });
      }
    }
  }

  /** Creates the pod, or creates it again after one that ended without a pull: its node was full, or was deleted. */
  async #pull(
    project: Project,
    wanted: HttpApp,
    hash: string,
    pull: Pod | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (pull) {
      if (pull.status?.phase === "Failed" && !pull.metadata.deletionTimestamp) {
        await deleteSeen(this.#client, resources.pods, pull, { signal });
      }
      return;
    }
    const pod = imagePullPod(wanted, hash);
    const ownerReferences = [controllerReference(project, projectResource)];
    try {
      const created = await this.#client.create<KubernetesObject>(
        resources.pods,
        { ...pod, metadata: { ...pod.metadata, ownerReferences } },
        { signal },
      );
      this.#stores.imagePulls.observe(created as Pod);
    } catch (error) {
      // It was created a moment ago, or the former one is not deleted yet: the watch reports either.
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
  }

  #of(id: string, namespace: string | undefined): Pod[] {
    return this.#stores.imagePulls
      .byIndex(labels.imagePull, id)
      .filter(({ metadata }) => metadata.namespace === namespace);
  }
}

const hasTemplateOf = (live: LiveDeployment | undefined, hash: string): boolean =>
  live?.spec?.template?.metadata?.annotations?.[annotations.settingsHash] === hash;

/** The wanted version's application with the live pods' template, to the letter. */
function keep(wanted: HttpApp, live: LiveDeployment | undefined): HttpApp {
  const template = live?.spec?.template as (PodTemplate & { spec: TemplateSpec }) | undefined;
  if (!template) {
    return wanted;
  }
  const { metadata, spec } = template;
  const port = spec.containers?.find(({ name }) => name === "app")?.ports?.[0]?.containerPort;
  const { labels: own, annotations: noted } = metadata;
  return {
    ...wanted,
    port: port ?? wanted.port,
    keptTemplate: { metadata: { labels: own, annotations: noted }, spec },
  };
}

interface TemplateSpec {
  containers?: readonly { name: string; ports?: readonly { containerPort: number }[] }[];
}

/** The child objects of a build: created once, read from the caches, deleted when the build has ended. */

import { containers } from "@slipway/builder/contract";
import {
  isAlreadyExists,
  isQuotaExceeded,
  type KubeClient,
  type KubernetesObject,
  type Resource,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { type Build, fieldManagers, type Project } from "@slipway/crds";
import { WaitingError } from "../reconcile-errors.ts";
import { literalVariables } from "../references/literal-variables.ts";
import { projectResource } from "../resources.ts";
import { buildsPolicy, cacheClaim } from "./desired/namespace.ts";
import { buildPod } from "./desired/pod.ts";
import { containerSecret, type SecretValues, secretFiles, secretTexts } from "./desired/secrets.ts";
import { evictCache } from "./garbage-collection.ts";
import { buildLabel, cacheName } from "./names.ts";
import { type BuildPod, hasTerminated } from "./pod-state.ts";
import type { BuildSettings } from "./settings.ts";
import type { OpenedSource } from "./sources.ts";

/** Indexes of the pods' store. */
export const BY_BUILD = "build";
export const BY_CACHE = "cache";

export interface BuildStores {
  builds: Store<Build>;
  projects: Store<Project>;
  pods: Store<BuildPod>;
}

export interface ClusterOptions {
  client: KubeClient;
  stores: BuildStores;
  settings: () => BuildSettings;
  /** PEM private key that signs the registry's tokens. */
  registryKey: () => string;
  /** Variables for the tools of builds. */
  tools: () => Readonly<Record<string, string>>;
}

export class BuildCluster {
  readonly #options: ClusterOptions;
  readonly #policies = new WeakSet<BuildSettings>();

  constructor(options: ClusterOptions) {
    this.#options = options;
  }

  /** The pod of one attempt, from the store or, when that has none, from the apiserver. */
  async pod(name: string, signal: AbortSignal): Promise<BuildPod | undefined> {
    const { client, stores, settings } = this.#options;
    const { namespace } = settings();
    return (
      stores.pods.get(namespace, name) ??
      (await client.getOrUndefined<BuildPod>(resources.pods, { namespace, name }, { signal }))
    );
  }

  podsOfBuild(build: Build): BuildPod[] {
    return this.#options.stores.pods.byIndex(BY_BUILD, buildLabel(build));
  }

  podsOfProject({ metadata }: Project): BuildPod[] {
    return this.#options.stores.pods.byIndex(
      BY_CACHE,
      cacheName({ id: metadata.name, uid: metadata.uid ?? "" }),
    );
  }

  /**
   * Deletes pods, and with them their Secrets. One whose containers have all terminated is deleted without a grace period: its
   * node may need seconds to clean up, and none of its processes uses the cache any more.
   * @returns whether there were any
   */
  async remove(pods: readonly BuildPod[], signal: AbortSignal): Promise<boolean> {
    for (const pod of pods) {
      const { name, namespace, uid, deletionTimestamp } = pod.metadata;
      const isOver = hasTerminated(pod);
      if (deletionTimestamp && !isOver) {
        continue;
      }
      const options = { uid, signal, ...(isOver ? { gracePeriodSeconds: 0 } : {}) };
      await this.#options.client.delete(resources.pods, { name, namespace }, options);
    }
    return pods.length > 0;
  }

  /** Creates a build's pod and the objects that it needs, unless they exist. @returns the pod's name */
  async start(
    { build, project, attempt }: { build: Build; project: Project; attempt: number },
    source: OpenedSource,
    now: Date,
    signal: AbortSignal,
  ): Promise<string> {
    const { stores, tools, registryKey } = this.#options;
    const settings = this.#options.settings();
    await this.#ensureNetworkPolicy(settings, signal);
    const cache = cacheName({ id: project.metadata.name, uid: project.metadata.uid ?? "" });
    await this.#ensureCache(cacheClaim(build, cache, settings) as KubernetesObject, signal);
    const given = {
      build,
      settings,
      credential: source.credential,
      gitCa: source.ca,
      envs: await this.#envs(project, signal),
      tools: tools(),
      registryKey: registryKey(),
      now,
    };
    const files = secretFiles(given);
    const wanted = buildPod({
      build,
      project,
      source: source.address,
      settings,
      hasGitCa: source.ca !== "",
      attempt,
      files,
    });
    const pod = await this.#ensure<BuildPod>(resources.pods, wanted as BuildPod, signal);
    if (pod.metadata.deletionTimestamp) {
      throw new WaitingError("ClearingAway", "A pod of the same name is being stopped.", {
        requeueAfterMs: 1_000,
      });
    }
    stores.pods.observe(pod);
    const owner = { name: pod.metadata.name, uid: pod.metadata.uid ?? "" };
    // Concurrently: the kubelet already waits for them.
    await Promise.all(
      containers
        .filter((container) => Object.keys(files[container]).length > 0)
        .map((container) => {
          const secret = containerSecret(given, { container, files: files[container], cache, pod: owner });
          return this.#create(resources.secrets, secret, signal);
        }),
    );
    return owner.name;
  }

  /** @throws WaitingError while an earlier cache of the name, or an evicted one, is being deleted */
  async #ensureCache(claim: KubernetesObject, signal: AbortSignal): Promise<void> {
    let live: KubernetesObject;
    try {
      live = await this.#ensure(resources.persistentVolumeClaims, claim, signal);
    } catch (error) {
      if (!isQuotaExceeded(error)) {
        throw error;
      }
      const { client, stores, settings } = this.#options;
      const isUsed = (cache: string) => stores.pods.byIndex(BY_CACHE, cache).length > 0;
      if (!(await evictCache(client, settings().namespace, isUsed, signal))) {
        throw error;
      }
      throw new WaitingError("ClearingAway", "Another cache is being removed, for its room.", {
        requeueAfterMs: 1_000,
      });
    }
    if (live.metadata?.deletionTimestamp) {
      throw new WaitingError("ClearingAway", "The cache, long unused, is being removed.", {
        requeueAfterMs: 1_000,
      });
    }
  }

  /** Applies the namespace's network policy before anything is built in it. */
  async #ensureNetworkPolicy(settings: BuildSettings, signal: AbortSignal): Promise<void> {
    if (this.#policies.has(settings)) {
      return;
    }
    const options = { fieldManager: fieldManagers.build, force: true, signal };
    await this.#options.client.apply(resources.networkPolicies, buildsPolicy(settings), options);
    this.#policies.add(settings);
  }

  /**
   * Variables of the project, later Secrets before earlier ones. Those that refer to other projects are not among them: nothing of
   * another project is in an image.
   */
  async #envs({ metadata, spec }: Project, signal: AbortSignal): Promise<Record<string, string>> {
    const { client } = this.#options;
    const { namespace } = metadata;
    const secrets = await Promise.all(
      (spec.envsFrom ?? []).map(({ name }) =>
        client.getOrUndefined<SecretValues>(resources.secrets, { namespace, name }, { signal }),
      ),
    );
    const texts = secrets.map((secret, at) =>
      literalVariables(secretTexts(secret), spec.envsFrom?.[at]?.references !== undefined),
    );
    return Object.assign({}, ...texts) as Record<string, string>;
  }

  async #ensure<T extends KubernetesObject>(resource: Resource, object: T, signal: AbortSignal): Promise<T> {
    const created = await this.#create(resource, object, signal);
    if (created) {
      return created;
    }
    const { name = "", namespace } = object.metadata ?? {};
    return this.#options.client.get<T>(resource, { name, namespace }, { signal });
  }

  /** Undefined when it exists already. */
  async #create<T extends KubernetesObject>(
    resource: Resource,
    object: T,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    try {
      return await this.#options.client.create<T>(resource, object, {
        fieldManager: fieldManagers.build,
        signal,
      });
    } catch (error) {
      if (!isAlreadyExists(error)) {
        throw error;
      }
      return undefined;
    }
  }
}

/** Writes a build's part of a project's status. @throws KubeError 409 when the project has changed since it was read */
export async function patchProjectStatus(
  project: Project,
  status: { build?: object; buildFailure?: object | null },
  { client, stores }: Pick<ClusterOptions, "client" | "stores">,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace, resourceVersion } = project.metadata;
  const patch = { metadata: { resourceVersion }, status };
  const options = { subresource: "status", fieldManager: fieldManagers.build, signal };
  stores.projects.observe(await client.patch<Project>(projectResource, { name, namespace }, patch, options));
}

/** What the activator observes of the cluster, and the one thing that it writes. */

import {
  customResource,
  type KubeClient,
  Reflector,
  type ReflectorEvents,
  resources,
  Store,
} from "@slipway/controller-runtime";
import {
  annotations,
  fieldManagers,
  GROUP,
  type Project,
  plurals,
  SLEEPS_LABEL,
  VERSION,
} from "@slipway/crds";
import type { Clock, Logger } from "@slipway/process";
import {
  type Address,
  type EndpointSlice,
  readyAddresses,
  routedHosts,
  type SleepingProject,
  sleepingProject,
} from "./projects.ts";

const projectResource = customResource(GROUP, VERSION, plurals.Project, "Project");
const BY_HOST = "host";
const BY_SERVICE = "service";

export class ActivatorCluster {
  readonly #client: KubeClient;
  readonly #projects: Reflector<Project>;
  readonly #slices: Reflector<EndpointSlice>;
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor({ client, clock, log }: { client: KubeClient; clock: Clock; log: Logger }) {
    this.#client = client;
    const events: ReflectorEvents = {
      onError: ({ resource, error }) =>
        log.warn({ resource: resource.plural, err: error }, "objects of the cluster cannot be watched"),
    };
    this.#projects = new Reflector<Project>({
      ...{ client, clock, events },
      resource: projectResource,
      store: new Store<Project>({
        clock,
        transform: slimProject,
      }),
    });
    this.#slices = new Reflector<EndpointSlice>({
      ...{ client, clock, events },
      resource: resources.endpointSlices,
      labelSelector: SLEEPS_LABEL,
      store: new Store<EndpointSlice>({
        clock,
        indexers: {
          [BY_SERVICE]: (slice) => [serviceOf(slice)],
          [BY_HOST]: (slice) => routedHosts(slice)?.hosts ?? [],
        },
      }),
    });
    this.#projects.store.subscribe(({ object }) => this.#notify(keyOf(object.metadata)));
    this.#slices.store.subscribe(({ object }) => this.#notify(serviceOf(object)));
  }

  get hasSynced(): boolean {
    return this.#projects.store.hasSynced && this.#slices.store.hasSynced;
  }

  /** Follows the cluster until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#projects.run(signal), this.#slices.run(signal)]);
  }

  /** The project that the ingress sends a host's requests here for; undefined where there is none. */
  find(host: string): SleepingProject | undefined {
    const [slice, ...others] = host === "" ? [] : this.#slices.store.byIndex(BY_HOST, host);
    const { id = "" } = (slice && routedHosts(slice)) ?? {};
    const project = this.#projects.store.get(slice?.metadata?.namespace, id);
    return project && others.length === 0 ? sleepingProject(project) : undefined;
  }

  /** The project as it is now; undefined when it is deleted. */
  current({ namespace, id, uid }: SleepingProject): SleepingProject | undefined {
    const project = this.#projects.store.get(namespace, id);
    return project?.metadata.uid === uid ? sleepingProject(project) : undefined;
  }

  /** Instances of a project that are ready. */
  addresses({ namespace, id }: SleepingProject): Address[] {
    return this.#slices.store.byIndex(BY_SERVICE, `${namespace}/${id}`).flatMap(readyAddresses);
  }

  /** Waits until something of a project has changed, or the signal aborts. */
  changed({ namespace, id }: SleepingProject, signal: AbortSignal): Promise<void> {
    const key = `${namespace}/${id}`;
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(key) ?? new Set();
      const end = () => {
        waiting.delete(end);
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) {
          this.#waiting.delete(key);
        }
        signal.removeEventListener("abort", end);
        resolve();
      };
      this.#waiting.set(key, waiting.add(end));
      signal.addEventListener("abort", end);
      if (signal.aborted) {
        end();
      }
    });
  }

  /** Asks for the end of a sleep. Repeated, it changes nothing. @throws KubeError */
  async requestWake({ namespace, id, uid, sleepId }: SleepingProject, signal: AbortSignal): Promise<void> {
    const patch = { metadata: { uid, annotations: { [annotations.wakeRequested]: sleepId } } };
    const options = { fieldManager: fieldManagers.activator, signal };
    const ref = { namespace, name: id };
    this.#projects.store.observe(await this.#client.patch<Project>(projectResource, ref, patch, options));
  }

  #notify(key: string): void {
    for (const end of [...(this.#waiting.get(key) ?? [])]) {
      end();
    }
  }
}

const keyOf = (metadata: { namespace?: string; name?: string } | undefined): string =>
  `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;

const serviceOf = ({ metadata }: EndpointSlice): string =>
  `${metadata?.namespace ?? ""}/${metadata?.labels?.["kubernetes.io/service-name"] ?? ""}`;

/** Without what is not used here. */
function slimProject({ apiVersion, kind, metadata, spec, status }: Project): Project {
  const { name, namespace, uid, resourceVersion, generation } = metadata;
  const wakeRequested = metadata.annotations?.[annotations.wakeRequested];
  return {
    apiVersion,
    kind,
    metadata: {
      ...{ name, namespace, uid, resourceVersion, generation },
      ...(wakeRequested === undefined ? {} : { annotations: { [annotations.wakeRequested]: wakeRequested } }),
    },
    spec: { type: spec?.type, exposure: spec?.exposure } as Project["spec"],
    status: status && { sleep: status.sleep },
  } as Project;
}

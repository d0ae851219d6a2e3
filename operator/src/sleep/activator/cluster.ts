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
  type SleepingProject,
  sleepingProject,
} from "./projects.ts";

const projectResource = customResource(GROUP, VERSION, plurals.Project, "Project");
const BY_HOST = "host";
const BY_SERVICE = "service";
/** How long the instances of a project are known that has just ceased to be one that may sleep: the ingress learns of it later. */
const REMEMBERED_MS = 60_000;

export class ActivatorCluster {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #projects: Reflector<Project>;
  readonly #slices: Reflector<EndpointSlice>;
  readonly #remembered = new Map<string, { slice: EndpointSlice; until: number }>();
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor({ client, clock, log }: { client: KubeClient; clock: Clock; log: Logger }) {
    this.#client = client;
    this.#clock = clock;
    const events: ReflectorEvents = {
      onError: ({ resource, error }) =>
        log.warn({ resource: resource.plural, err: error }, "objects of the cluster cannot be watched"),
    };
    this.#projects = new Reflector<Project>({
      ...{ client, clock, events },
      resource: projectResource,
      store: new Store<Project>({
        clock,
        indexers: { [BY_HOST]: (project) => sleepingProject(project)?.hosts ?? [] },
        transform: slimProject,
      }),
    });
    this.#slices = new Reflector<EndpointSlice>({
      ...{ client, clock, events },
      resource: resources.endpointSlices,
      labelSelector: SLEEPS_LABEL,
      store: new Store<EndpointSlice>({
        clock,
        indexers: { [BY_SERVICE]: (slice) => [serviceOf(slice)] },
      }),
    });
    this.#projects.store.subscribe(({ object }) => this.#notify(keyOf(object.metadata)));
    this.#slices.store.subscribe(({ type, object }) => {
      this.#remember(type === "delete" ? object : undefined);
      this.#notify(serviceOf(object));
    });
  }

  get hasSynced(): boolean {
    return this.#projects.store.hasSynced && this.#slices.store.hasSynced;
  }

  /** Follows the cluster until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#projects.run(signal), this.#slices.run(signal)]);
  }

  /** The project that a hostname leads to; undefined where none does, or two are said to for a moment. */
  find(host: string): SleepingProject | undefined {
    const found = host === "" ? [] : this.#projects.store.byIndex(BY_HOST, host);
    return found.length === 1 && found[0] ? sleepingProject(found[0]) : undefined;
  }

  /** The project as it is now; undefined when it is deleted. */
  current({ namespace, id, uid }: SleepingProject): SleepingProject | undefined {
    const project = this.#projects.store.get(namespace, id);
    return project?.metadata.uid === uid ? sleepingProject(project) : undefined;
  }

  /** Instances of a project that are ready. */
  addresses({ namespace, id }: SleepingProject): Address[] {
    const key = `${namespace}/${id}`;
    const live = this.#slices.store.byIndex(BY_SERVICE, key);
    const now = this.#clock.monotonic();
    const slices =
      live.length > 0
        ? live
        : [...this.#remembered.values()]
            .filter(({ slice, until }) => serviceOf(slice) === key && until > now)
            .map(({ slice }) => slice);
    return slices.flatMap(readyAddresses);
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

  #remember(deleted: EndpointSlice | undefined): void {
    const now = this.#clock.monotonic();
    for (const [name, { until }] of this.#remembered) {
      if (until <= now) {
        this.#remembered.delete(name);
      }
    }
    if (deleted) {
      this.#remembered.set(keyOf(deleted.metadata), { slice: deleted, until: now + REMEMBERED_MS });
    }
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
    status: status && {
      domain: status.domain,
      customDomains: status.customDomains?.map((one) => ({ ...one, dnsRecords: undefined })),
      sleep: status.sleep,
    },
  } as Project;
}

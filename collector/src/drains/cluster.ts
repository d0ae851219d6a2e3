import {
  customResource,
  equalJson,
  isConflict,
  isNotFound,
  type KubeClient,
  type KubernetesObject,
  keyOf,
  Reflector,
  type ReflectorEvents,
  resources,
  Store,
  writeStatus,
} from "@slipway/controller-runtime";
import { GROUP, type LogDrain, organizationNamespace, plurals, VERSION } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { Log } from "../sender.ts";
import { type Credentials, credentialsOf, type SecretData } from "./credentials.ts";
import type { Drain } from "./drain.ts";
import type { DrainMetrics } from "./metrics.ts";
import { DeliveryError } from "./receiver.ts";
import { statusOf } from "./status.ts";
import { StatusPace } from "./status-pace.ts";

const drainResource = customResource(GROUP, VERSION, plurals.LogDrain, "LogDrain");
const projectResource = customResource(GROUP, VERSION, plurals.Project, "Project");

export interface DrainClusterOptions {
  kube: KubeClient;
  clock: Clock;
  metrics: DrainMetrics;
  log: Log;
}

/** Log drains, projects' names and Secrets, as they are in the cluster, and the drains' statuses. */
export class DrainCluster {
  readonly #options: DrainClusterOptions;
  readonly #drains: Reflector<LogDrain & KubernetesObject>;
  readonly #projects: Reflector<KubernetesObject & { spec?: { name?: string } }>;
  readonly #pace: StatusPace;

  constructor(options: DrainClusterOptions) {
    const { kube: client, clock, log, metrics } = options;
    this.#options = options;
    this.#pace = new StatusPace(clock);
    const events: ReflectorEvents = {
      onError: ({ resource, error }) => {
        metrics.failures.inc({ step: "watch" });
        log.warn({ resource: resource.plural, err: error }, "objects of the cluster cannot be watched");
      },
    };
    this.#drains = new Reflector({
      ...{ client, clock, events },
      resource: drainResource,
      store: new Store<LogDrain & KubernetesObject>({ clock }),
    });
    this.#projects = new Reflector({
      ...{ client, clock, events },
      resource: projectResource,
      // Its name is all that is used.
      store: new Store({
        clock,
        transform: ({ metadata, spec }) => ({ metadata, spec: { name: spec?.name } }),
      }),
    });
  }

  get hasSynced(): boolean {
    return this.#drains.store.hasSynced && this.#projects.store.hasSynced;
  }

  /** Follows the cluster until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#drains.run(signal), this.#projects.run(signal)]);
  }

  list(): readonly LogDrain[] {
    return [...this.#drains.store.list()] as LogDrain[];
  }

  /** A project's name; its id where there is none any more. */
  nameOf(organization: string, project: string): string {
    const namespace = organizationNamespace(organization);
    return this.#projects.store.get(namespace, project)?.spec?.name ?? project;
  }

  /** @throws DeliveryError SecretNotFound, SecretInvalid; KubeError when the apiserver does not answer */
  async credentials({ metadata, spec }: LogDrain): Promise<Credentials> {
    if (spec.secretRef === undefined) {
      return credentialsOf(spec, undefined);
    }
    const ref = { namespace: metadata.namespace ?? "", name: spec.secretRef.name };
    const { kube } = this.#options;
    const secret = await kube.getOrUndefined<KubernetesObject & { data?: SecretData }>(
      resources.secrets,
      ref,
    );
    if (secret === undefined) {
      throw new DeliveryError("SecretNotFound", `the Secret ${ref.name} does not exist`);
    }
    return credentialsOf(spec, secret.data ?? {});
  }

  /** Writes what a status should say, unless it says it, or was written a moment ago. Never rejects. */
  report(drain: Drain, lagMs: number): void {
    const { kube, clock, log, metrics } = this.#options;
    const object = drain.resource as LogDrain & KubernetesObject;
    const status = statusOf(drain, lagMs, clock.now());
    if (equalJson(object.status, status)) {
      return;
    }
    const isChange =
      !equalJson(object.status?.conditions, status.conditions) ||
      object.status?.observedGeneration !== status.observedGeneration;
    if (!this.#pace.take(drain.uid, isChange)) {
      return;
    }
    const options = { client: kube, resource: drainResource, store: this.#drains.store };
    writeStatus(object, status, options).catch((error: unknown) => {
      // It was changed or deleted meanwhile: the next round has it as it is.
      if (isConflict(error) || isNotFound(error)) {
        return;
      }
      metrics.failures.inc({ step: "status" });
      log.warn({ err: error, drain: keyOf(object) }, "the status of a log drain cannot be written");
    });
  }
}

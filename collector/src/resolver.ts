import {
  type KubeClient,
  type KubernetesObject,
  keyOf,
  Reflector,
  type ReflectorEvents,
  type ReflectorOptions,
  resources,
  Store,
} from "@slipway/controller-runtime";
import { labels, ORGANIZATION_NAMESPACE_PREFIX, PROBE_USER_AGENT } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { AccessLine } from "./access-line.ts";
import {
  type IngressView,
  NameTable,
  namesOf,
  type Owner,
  ownerOf,
  REMEMBERED_MS,
  routerNames,
  type ServiceView,
  serviceNames,
} from "./traefik-names.ts";

/**
 * Why a request is no project's: `no_route` (the ingress knew no host of that name), `not_a_project` (the API, for one),
 * `ambiguous` (two projects' objects have the name), `probe` (the platform's own question whether a project answers).
 * `unknown`: its name has a project's form, but no object has it (yet).
 */
export type NoOwner = "no_route" | "not_a_project" | "ambiguous" | "probe" | "unknown";

/** How long after a request its project's objects are waited for: the ingress may observe them first. */
export const UNKNOWN_MS = 3_000;

/** Milliseconds for which a request of an unknown project is still resolved again; 0 or less when that is over. */
export function msUntilGivenUp({ event }: AccessLine, now: Date): number {
  return event.at + event.latencyUs / 1000 + UNKNOWN_MS - now.getTime();
}

type PodView = KubernetesObject & { status?: { podIPs?: { ip: string }[] } };

export interface ResolverOptions {
  client: KubeClient;
  clock: Clock;
  /** Namespace of the operator, whose pods query the ingress whether projects answer. */
  systemNamespace: string;
  events?: ReflectorEvents;
}

/** Whose requests are, from the objects of the cluster: by the names that the ingress gives to Services and Ingresses, never by host. */
export class Resolver {
  readonly #clock: Clock;
  readonly #services = new NameTable();
  readonly #routers = new NameTable();
  readonly #probes = new Map<string, number>();
  readonly #reflectors: Reflector<KubernetesObject>[];

  constructor({ client, clock, systemNamespace, events }: ResolverOptions) {
    this.#clock = clock;
    const reflect = <T extends KubernetesObject>(
      options: Pick<ReflectorOptions<T>, "resource" | "namespace" | "labelSelector">,
      take: (key: string, object: T, isThere: boolean) => void,
    ) => {
      const store = new Store<T>({ clock });
      store.subscribe(({ type, key, object }) => take(key, object, type !== "delete"));
      return new Reflector<T>({ ...options, client, store, clock, events }) as unknown as Reflector;
    };
    const ofProjects = { labelSelector: labels.project };
    this.#reflectors = [
      reflect<ServiceView>({ resource: resources.services, ...ofProjects }, (_, service, isThere) =>
        this.#note(this.#services, service, serviceNames(service), isThere),
      ),
      reflect<IngressView>({ resource: resources.ingresses, ...ofProjects }, (_, ingress, isThere) =>
        this.#note(this.#routers, ingress, routerNames(ingress), isThere),
      ),
      reflect<PodView>(
        {
          resource: resources.pods,
          namespace: systemNamespace,
          labelSelector: "app.kubernetes.io/name=slipway-operator",
        },
        (_, pod, isThere) => this.#noteProbe(pod, isThere),
      ),
    ];
  }

  /** Whether all that is needed has been listed once. */
  get hasSynced(): boolean {
    return this.#reflectors.every(({ store }) => store.hasSynced);
  }

  /** Follows the cluster until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.run(signal)));
  }

  /** Whose a request is, or why it is nobody's. */
  resolve({ target, peer, event }: AccessLine): Owner | NoOwner {
    const now = this.#clock.monotonic();
    if (event.userAgent === PROBE_USER_AGENT && now < (this.#probes.get(peer) ?? 0)) {
      return "probe";
    }
    if (target.service === "" && target.router === "" && !target.object) {
      return "no_route";
    }
    const found = namesOf(target);
    if (!found) {
      return "not_a_project";
    }
    const table = found.kind === "service" ? this.#services : this.#routers;
    for (const name of found.names) {
      const owner = table.find(name, now);
      if (owner) {
        return owner;
      }
    }
    return found.names.some((name) => name.startsWith(ORGANIZATION_NAMESPACE_PREFIX))
      ? "unknown"
      : "not_a_project";
  }

  #note(table: NameTable, object: KubernetesObject, names: string[], isThere: boolean): void {
    const owner = ownerOf(object);
    const now = this.#clock.monotonic();
    if (isThere && owner) {
      table.set(keyOf(object), owner, names, now);
    } else {
      table.remove(keyOf(object), now);
    }
  }

  #noteProbe({ status }: PodView, isThere: boolean): void {
    const until = isThere ? Number.POSITIVE_INFINITY : this.#clock.monotonic() + REMEMBERED_MS;
    for (const { ip } of status?.podIPs ?? []) {
      this.#probes.set(ip, until);
    }
  }
}

/** What exists of a contender's objects and their children, by watches: asking again and again would load the apiserver. */
import {
  dropManagedFields,
  type KubeClient,
  type KubernetesObject,
  Reflector,
  type Resource,
  resources,
  Store,
} from "@slipway/controller-runtime";
import { waitFor } from "../../../hack/lib/wait.ts";
import { type Contender, NAME_PREFIX } from "./contenders.ts";

interface Deployment extends KubernetesObject {
  spec?: { template?: { spec?: { containers?: { image?: string }[] } } };
}

/** Kinds that each object has one of. */
const CHILDREN = [
  resources.deployments,
  resources.services,
  resources.ingresses,
  resources.networkPolicies,
] as const;

export class Children {
  readonly #deployments: Store<Deployment>;
  readonly #stores: Store<KubernetesObject>[];
  readonly #stopping = new AbortController();
  readonly #running: Promise<unknown>[] = [];
  readonly #namespaces: readonly string[];

  private constructor(client: KubeClient, { namespaces, resource }: Contender) {
    this.#namespaces = namespaces;
    const watch = <T extends KubernetesObject>(kind: Resource, metadataOnly: boolean): Store<T> => {
      const store = new Store<T>({ transform: dropManagedFields });
      const reflector = new Reflector<T>({ client, resource: kind, store, metadataOnly });
      this.#running.push(reflector.run(this.#stopping.signal));
      return store;
    };
    this.#deployments = watch<Deployment>(resources.deployments, false);
    this.#stores = [...CHILDREN.filter((kind) => kind !== resources.deployments), resource].map((kind) =>
      watch(kind, true),
    );
  }

  /** Resolves once everything is watched. */
  static async watch(client: KubeClient, contender: Contender): Promise<Children> {
    const children = new Children(client, contender);
    await waitFor("the watches", 60_000, async () => children.#all.every(({ hasSynced }) => hasSynced));
    return children;
  }

  /** Waits until there are so many of every kind, with that image. */
  async untilApplied(count: number, image: string): Promise<void> {
    await waitFor(`${count} applied objects`, 3_600_000, async () => {
      const deployments = this.#own(this.#deployments);
      return (
        this.#stores.every((store) => this.#count(store) >= count) &&
        deployments.filter((deployment) => imageOf(deployment) === image).length >= count
      );
    });
  }

  /** Waits until one object's Deployment has that image. */
  async untilChanged({ namespace, name }: { namespace: string; name: string }, image: string): Promise<void> {
    await waitFor(
      `the change of ${name}`,
      600_000,
      async () => {
        const deployment = this.#deployments.get(namespace, name);
        return deployment !== undefined && imageOf(deployment) === image;
      },
      10,
    );
  }

  async untilNone(): Promise<void> {
    await waitFor("everything to be deleted", 3_600_000, async () =>
      this.#all.every((store) => this.#count(store) === 0),
    );
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.allSettled(this.#running);
  }

  #count(store: Store<KubernetesObject>): number {
    return this.#own(store).length;
  }

  /** The objects or their children: a namespace has policies of its own. */
  #own<T extends KubernetesObject>(store: Store<T>): T[] {
    return this.#namespaces.flatMap((namespace) =>
      store.list(namespace).filter(({ metadata }) => metadata?.name?.startsWith(NAME_PREFIX)),
    );
  }

  get #all(): Store<KubernetesObject>[] {
    return [...this.#stores, this.#deployments];
  }
}

const imageOf = ({ spec }: Deployment): string | undefined => spec?.template?.spec?.containers?.[0]?.image;

import { type KubeClient, Reflector, Store } from "@slipway/controller-runtime";
import { type GitConnection, organizationOfNamespace } from "@slipway/crds";
import type { Logger } from "pino";
import { failures } from "../errors/catalog.ts";
import { gitConnectionResource } from "../resources.ts";

/** How long the list of all connections may take a page, which no request waits for. */
const LIST_TIMEOUT_MS = 30_000;

type Metadata = Pick<GitConnection, "metadata">;

/** The owners of Git connections: a delivery of a hook, which names its connection alone, is counted under its owner. */
export interface ConnectionOwners {
  /**
   * The organization of the connection with this id; undefined when there is none. It needs no request to the cluster: it is called before any authorization.
   * @throws Failure 503 before the connections were read
   */
  organizationOf(connectionId: string): string | undefined;
}

/** The metadata of every Git connection of the cluster, in memory, kept by a reflector. */
export class ConnectionStore implements ConnectionOwners {
  readonly #store: Store<Metadata>;
  readonly #reflector: Reflector<Metadata>;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor({ client, logger }: { client: KubeClient; logger: Logger }) {
    this.#store = new Store<Metadata>({ indexers: { name: ({ metadata }) => [metadata.name] } });
    this.#reflector = new Reflector<Metadata>({
      client,
      resource: gitConnectionResource,
      store: this.#store,
      metadataOnly: true,
      listTimeoutMs: LIST_TIMEOUT_MS,
      events: {
        onError: ({ error, delayMs }) =>
          logger.warn({ err: error, delayMs }, "Git connections cannot be watched"),
      },
    });
  }

  /** Begins to list and watch; resolves immediately. */
  start(): void {
    this.#running ??= this.#reflector.run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Whether every connection was read once. */
  get hasSynced(): boolean {
    return this.#store.hasSynced;
  }

  organizationOf(connectionId: string): string | undefined {
    if (!this.hasSynced) {
      throw failures.clusterUnavailable(new Error("Git connections are not read yet"));
    }
    // Users with write access to the cluster may give two organizations the same name: then neither is used.
    const [only, ...others] = this.#store
      .byIndex("name", connectionId)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    if (only === undefined || others.length > 0) {
      return undefined;
    }
    return organizationOfNamespace(only.metadata.namespace ?? "");
  }
}

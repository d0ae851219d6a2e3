import { organizationNamespace, PROJECT_ID, type Project } from "@slipway/crds";
import { byNamespace, dropManagedFields, type KubeClient, Reflector, Store } from "@slipway/kube";
import type { Logger } from "pino";
import { failures } from "../errors/catalog.ts";
import { ApiProject } from "./api-project.ts";
import { projectResource } from "./kinds.ts";
import { specUpdatedAt } from "./updated-at.ts";

export interface ProjectStoreOptions {
  client: KubeClient;
  logger: Logger;
  /** Zone of default domains. */
  zone: string;
}

/** What the routes ask of the projects. */
export interface Projects {
  /**
   * One project. At once when it is in memory; else the cluster is asked, since another replica may have made it a
   * moment ago.
   * @throws Failure 503 when it is not in memory and the cluster does not answer
   */
  find(organizationId: string, id: string): ApiProject | undefined | Promise<ApiProject | undefined>;
  /** Every project of an organization, in no order. */
  list(organizationId: string): ApiProject[];
  /** Takes in what a write returned, so that the next read shows it. */
  observe(project: Project): ApiProject;
  /** Resolves true once the object with this uid is gone, false after `timeoutMs`. */
  waitUntilGone(project: Project, timeoutMs: number): Promise<boolean>;
}

/**
 * Every project of the cluster, in memory, kept by a reflector. Reads are answered from here.
 */
export class ProjectStore implements Projects {
  readonly #client: KubeClient;
  readonly #zone: string;
  readonly #store: Store<Project>;
  readonly #reflector: Reflector<Project>;
  readonly #updatedAt = new WeakMap<Project, string>();
  readonly #views = new WeakMap<Project, ApiProject>();
  #running: Promise<void> | undefined;
  readonly #stop = new AbortController();

  constructor({ client, logger, zone }: ProjectStoreOptions) {
    this.#client = client;
    this.#zone = zone;
    this.#store = new Store<Project>({
      indexers: { namespace: byNamespace },
      transform: (project) => {
        // managedFields is dropped here, and with it the only record of when the spec changed.
        const known = this.#updatedAt.get(project) ?? specUpdatedAt(project);
        const kept = dropManagedFields(project);
        this.#updatedAt.set(kept, known);
        return kept;
      },
      onHandlerError: (error) => logger.error({ err: error }, "project subscriber failed"),
    });
    this.#reflector = new Reflector<Project>({
      client,
      resource: projectResource,
      store: this.#store,
      events: {
        onError: ({ error, delayMs }) => logger.warn({ err: error, delayMs }, "projects cannot be watched"),
      },
    });
  }

  /** Begins to list and watch; resolves at once. */
  start(): void {
    this.#running ??= this.#reflector.run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Whether every project was read once. */
  get hasSynced(): boolean {
    return this.#store.hasSynced;
  }

  get size(): number {
    return this.#store.size;
  }

  find(organizationId: string, id: string): ApiProject | undefined | Promise<ApiProject | undefined> {
    const namespace = organizationNamespace(organizationId);
    const known = this.#store.get(namespace, id);
    if (known) return this.#view(known);
    return PROJECT_ID.test(id) ? this.#findLive(namespace, id) : undefined;
  }

  list(organizationId: string): ApiProject[] {
    return this.#store
      .byIndex("namespace", organizationNamespace(organizationId))
      .map((project) => this.#view(project));
  }

  observe(project: Project): ApiProject {
    this.#store.observe(project);
    const kept = this.#store.get(project.metadata.namespace, project.metadata.name);
    return this.#view(kept ?? project);
  }

  waitUntilGone(project: Project, timeoutMs: number): Promise<boolean> {
    const { namespace, name, uid } = project.metadata;
    const isGone = () => this.#store.get(namespace, name)?.metadata.uid !== uid;
    return new Promise((resolve) => {
      const settle = (gone: boolean) => {
        clearTimeout(timer);
        unsubscribe();
        resolve(gone);
      };
      const timer = setTimeout(() => settle(isGone()), timeoutMs);
      let unsubscribe = () => {};
      // The subscriber is called for every object present first, so nothing between is missed.
      unsubscribe = this.#store.subscribe((event) => {
        if (event.type === "delete" && event.object.metadata.uid === uid) settle(true);
      });
      if (isGone()) settle(true);
    });
  }

  async #findLive(namespace: string, id: string): Promise<ApiProject | undefined> {
    try {
      const found = await this.#client.getOrUndefined<Project>(projectResource, { namespace, name: id });
      return found && this.observe(found);
    } catch (error) {
      throw failures.clusterUnavailable(error);
    }
  }

  #view(project: Project): ApiProject {
    let view = this.#views.get(project);
    if (!view) {
      const updatedAt = this.#updatedAt.get(project) ?? specUpdatedAt(project);
      view = new ApiProject(project, updatedAt, this.#zone);
      this.#views.set(project, view);
    }
    return view;
  }
}

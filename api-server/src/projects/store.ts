import {
  compareResourceVersions,
  dropManagedFields,
  type KubeClient,
  Reflector,
  Store,
} from "@slipway/controller-runtime";
import {
  isDatabaseType,
  organizationNamespace,
  organizationOfNamespace,
  PROJECT_ID,
  type Project,
  type ProjectPlan,
} from "@slipway/crds";
import type { Logger } from "pino";
import { planInForce } from "../databases/plan.ts";
import { failures } from "../errors/catalog.ts";
import { localWrites, type Memory, type NewestWrites } from "../http/newest-writes.ts";
import { projectResource } from "../resources.ts";
import { ApiProject, specUpdatedAt } from "./api-project.ts";
import { OrganizationIndex, type SortField } from "./organization-index.ts";
import type { ProjectTable } from "./project-table.ts";

/** How long the list of all projects may take a page, which no request waits for. */
const LIST_TIMEOUT_MS = 30_000;

export interface ProjectStoreOptions {
  client: KubeClient;
  logger: Logger;
  /** Zone of default domains. */
  zone: string;
  /** The plan of an id, for what a project's status does not report yet. */
  planOf?: (plan: string) => ProjectPlan | undefined;
  /** Publishes writes to the other replicas; not by default. */
  writes?: NewestWrites;
}

/** What routes read of projects. */
export interface Projects extends Memory {
  /**
   * One project. Immediately when it is in memory; else it is read live, since another replica may have created it a
   * moment ago.
   * @throws Failure 503 when it is not in memory and the cluster does not answer
   */
  find(organizationId: string, id: string): ApiProject | undefined | Promise<ApiProject | undefined>;
  /** Every project of an organization. Never change it: it is shared. */
  list(organizationId: string): readonly ApiProject[];
  /** The same for the list: the oldest by the given moment first, and what it filters by. */
  table(organizationId: string, order: SortField): ProjectTable;
  /**
   * Stores what a write returned, so that the next read shows it, on this replica and on every other. A caller that
   * writes a Project awaits this before it answers, with the last object that the cluster returned.
   */
  observe(project: Project): Promise<ApiProject>;
  /**
   * Resolves true once the object with this uid is deleted, false after `timeoutMs`. From then on it does not exist for readers
   * on the other replicas too.
   */
  waitForDeletion(project: Project, timeoutMs: number): Promise<boolean>;
}

/**
 * Every project of the cluster, in memory, kept by a reflector. Reads are answered from here.
 */
export class ProjectStore implements Projects {
  readonly #client: KubeClient;
  readonly #zone: string;
  readonly #planOf: (plan: string) => ProjectPlan | undefined;
  readonly #writes: NewestWrites;
  readonly #store: Store<Project>;
  readonly #reflector: Reflector<Project>;
  readonly #updatedAt = new WeakMap<Project, string>();
  readonly #index = new OrganizationIndex((project) => this.#makeView(project));
  #running: Promise<void> | undefined;
  readonly #stop = new AbortController();

  constructor({ client, logger, zone, planOf = () => undefined, writes = localWrites }: ProjectStoreOptions) {
    this.#client = client;
    this.#zone = zone;
    this.#planOf = planOf;
    this.#writes = writes;
    this.#store = new Store<Project>({
      transform: (project) => {
        // managedFields is dropped here, and with it the only record of when the spec changed.
        const known = this.#updatedAt.get(project) ?? specUpdatedAt(project);
        const kept = dropManagedFields(project);
        this.#updatedAt.set(kept, known);
        return kept;
      },
      onHandlerError: (error) => logger.error({ err: error }, "project subscriber failed"),
    });
    this.#store.subscribe((event) => this.#index.apply(event));
    this.#reflector = new Reflector<Project>({
      client,
      resource: projectResource,
      store: this.#store,
      listTimeoutMs: LIST_TIMEOUT_MS,
      events: {
        onError: ({ error, delayMs }) => logger.warn({ err: error, delayMs }, "projects cannot be watched"),
      },
    });
  }

  /** Starts to list and watch; does not wait. */
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
    const known = this.#index.find(organizationId, id);
    if (known) {
      return known;
    }
    return PROJECT_ID.test(id) ? this.#findLive(organizationId, id) : undefined;
  }

  list(organizationId: string): readonly ApiProject[] {
    return this.#index.sorted(organizationId, "updated_at").projects;
  }

  table(organizationId: string, order: SortField): ProjectTable {
    return this.#index.sorted(organizationId, order);
  }

  async observe(project: Project): Promise<ApiProject> {
    const view = this.#remember(project);
    await this.#publish(project, project.metadata.resourceVersion);
    return view;
  }

  async waitForDeletion(project: Project, timeoutMs: number): Promise<boolean> {
    const isDeleted = await this.#waitForDelete(project, timeoutMs);
    // By now the store has applied the event that reported it, and so is at that event's version or later.
    await this.#publish(project, this.#store.resourceVersion);
    return isDeleted;
  }

  hasSeen(resourceVersion: string): boolean {
    const seen = this.#store.resourceVersion;
    return seen !== undefined && compareResourceVersions(seen, resourceVersion) >= 0;
  }

  waitUntilSeen(resourceVersion: string, timeoutMs: number): Promise<boolean> {
    return this.#store.waitForResourceVersion(resourceVersion, { timeoutMs });
  }

  #remember(project: Project): ApiProject {
    this.#store.observe(project);
    const { namespace = "", name } = project.metadata;
    const organizationId = organizationOfNamespace(namespace);
    const kept = organizationId === undefined ? undefined : this.#index.find(organizationId, name);
    // One that was deleted since is not kept.
    return kept ?? this.#makeView(project);
  }

  async #publish({ metadata }: Project, resourceVersion: string | undefined): Promise<void> {
    const organizationId = organizationOfNamespace(metadata.namespace ?? "");
    if (organizationId && resourceVersion) {
      await this.#writes.publish(organizationId, resourceVersion);
    }
  }

  #waitForDelete(project: Project, timeoutMs: number): Promise<boolean> {
    const { namespace, name, uid } = project.metadata;
    const hasBeenDeleted = () => this.#store.get(namespace, name)?.metadata.uid !== uid;
    return new Promise((resolve) => {
      const finish = (isDeleted: boolean) => {
        clearTimeout(timer);
        unsubscribe();
        resolve(isDeleted);
      };
      const timer = setTimeout(() => finish(hasBeenDeleted()), timeoutMs);
      let unsubscribe = () => {};
      // The subscriber is called for every object present first, so nothing between is missed.
      unsubscribe = this.#store.subscribe((event) => {
        if (event.type === "delete" && event.object.metadata.uid === uid) {
          finish(true);
        }
      });
      if (hasBeenDeleted()) {
        finish(true);
      }
    });
  }

  async #findLive(organizationId: string, id: string): Promise<ApiProject | undefined> {
    const namespace = organizationNamespace(organizationId);
    try {
      const found = await this.#client.getOrUndefined<Project>(projectResource, { namespace, name: id });
      return found && this.#remember(found);
    } catch (error) {
      throw failures.clusterUnavailable(error);
    }
  }

  #makeView(project: Project): ApiProject {
    const updatedAt = this.#updatedAt.get(project) ?? specUpdatedAt(project);
    const plan = this.#planOf(planInForce(project));
    return new ApiProject(project, {
      updatedAt,
      zone: this.#zone,
      limits: plan?.resources.limits,
      defaultInstances: defaultInstances(project, plan),
    });
  }
}

/** Valkey's instances are its plan's. */
function defaultInstances({ spec: { type } }: Project, plan: ProjectPlan | undefined): number | undefined {
  return plan && "engines" in plan && isDatabaseType(type)
    ? plan.engines[type]?.instances.default
    : undefined;
}

/** Projects that are databases or key-value services, whatever their engine. */

import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  type DatabaseCredentials,
  type DatabasePlan,
  fieldManagers,
  isDatabaseType,
  type Project,
} from "@slipway/crds";
import type { Accepted } from "../projects/accept.ts";
import { DELETION_POLL_INTERVAL_MS, type DeletionStep, runDeletionStep } from "../projects/deletion.ts";
import {
  type KindDependencies,
  type Observation,
  ownerOf,
  type ProjectContext,
  type ProjectKind,
  type Remaining,
  shortestDelay,
} from "../projects/kind.ts";
import { reportGrowth } from "../projects/volume.ts";
import { PasswordUse } from "../references/password-use.ts";
import { acceptDatabase } from "./accept.ts";
import { Credentials } from "./credentials.ts";
import type { Database } from "./database.ts";
import type { DatabaseDriver, LiveDatabase } from "./driver.ts";
import { outsideAddress, readBeforeStart, readDatabase } from "./live.ts";
import { changePlan, planStatusOf, planToBuild } from "./plan-change.ts";
import { type Applied, type ClusterDependencies, reconcileAndRestore } from "./reconcile-and-restore.ts";
import { withRunningTemplate } from "./running-template.ts";
import { summarizeDatabase, summarizeStop } from "./status.ts";
import { type Certificate, certificateNames, ensureCertificate } from "./tls/secret.ts";
import { toDatabase } from "./to-database.ts";
import { growVolumes, readVolumes } from "./volumes.ts";

export interface DatabaseDependencies extends KindDependencies, ClusterDependencies {
  /** Uids of pods whose volumes are full. */
  fullVolumes: { has(podUid: string): boolean };
}

/** A certificate is checked once a day at least, so that it is renewed in time. */
const DAILY_MS = 86_400_000;

export class DatabaseKind implements ProjectKind<DatabasePlan, Applied> {
  readonly #driver: DatabaseDriver;
  readonly #deps: DatabaseDependencies;
  readonly #credentials: Credentials;
  readonly #passwordUse: PasswordUse;

  constructor(driver: DatabaseDriver, deps: DatabaseDependencies) {
    this.#driver = driver;
    this.#deps = deps;
    this.#credentials = new Credentials({ client: deps.client, secrets: deps.stores.secrets });
    this.#passwordUse = new PasswordUse(deps);
  }

  async observeRollout(project: Project, { signal }: ProjectContext): Promise<void> {
    if (project.spec.paused) {
      await this.#stop(project, signal);
    }
  }

  /** Where a requested plan is not available, and another one is in force, that one stays. */
  validate(project: Project): DatabasePlan {
    const { catalog, platform } = this.#deps;
    const on = (plan: string) =>
      acceptDatabase(project, { catalog: catalog(), images: platform.images(), driver: this.#driver }, plan);
    const inBackground = this.#driver.changesPlansInBackground === true;
    const before = project.status?.plan;
    const wanted = inBackground ? planToBuild(project.spec, planStatusOf(project.status)) : project.spec.plan;
    try {
      return on(wanted);
    } catch (error) {
      if (!inBackground || before === undefined || before === wanted) {
        throw error;
      }
      return on(before);
    }
  }

  async apply(project: Project, accepted: Accepted<DatabasePlan>, context: ProjectContext): Promise<Applied> {
    const { applier, client } = this.#deps;
    const { log, signal } = context;
    const live = await readBeforeStart(project, this.#deps, signal);
    const credentials = await this.#credentials.ensure(
      project,
      this.#driver.name,
      accepted.organizationId,
      signal,
    );
    const database = this.#derive(project, accepted, credentials, live);
    const certificate = await this.#certify(project, database, live, signal);
    await applier.applyAndPrune(ownerOf(project), this.#driver.desired(database), { log, signal });
    const growth = await growVolumes(database, live, client, signal);
    reportGrowth(project, growth, context);
    const { obstacle } = growth;
    return { database, credentials, certificate, obstacle };
  }

  async holdRejectedSpec(project: Project, context: ProjectContext): Promise<number | undefined> {
    const { conditions, status } = context;
    if (project.spec.paused) {
      summarizeStop(readDatabase(project, this.#deps.stores), conditions, status);
    }
    return status.planChange?.status === "in_progress"
      ? changePlan(project, {}, this.#driver, this.#deps, context)
      : undefined;
  }

  async finalize(project: Project, context: ProjectContext): Promise<Remaining | undefined> {
    const { signal } = context;
    const { retention } = this.#deps;
    await retention.begin(project, signal);
    for (const step of deletionSteps) {
      if (step === remainsStep) {
        await retention.complete(project, context);
      }
      const waiting = await runDeletionStep(step, project, this.#deps, signal);
      if (waiting) {
        return { ...waiting, retryAfterMs: DELETION_POLL_INTERVAL_MS };
      }
    }
    const { uid = "" } = project.metadata;
    this.#credentials.forget(uid);
    this.#passwordUse.forget(uid);
    this.#driver.forget?.(uid);
    return undefined;
  }

  #derive(
    project: Project,
    accepted: Accepted<DatabasePlan>,
    credentials: DatabaseCredentials,
    live: LiveDatabase,
  ): Database {
    const { catalog, platform } = this.#deps;
    const database = toDatabase(project, accepted, { catalog: catalog(), platform, credentials, live });
    return withRunningTemplate(this.#driver, database, live);
  }

  #certify(
    project: Project,
    database: Database,
    live: LiveDatabase,
    signal: AbortSignal,
  ): Promise<Certificate> {
    const { authority, client, clock, platform, stores } = this.#deps;
    const outside = outsideAddress(live.outside, platform)?.host ?? platform.outside.host;
    const services = this.#driver.services?.(database);
    const names = certificateNames(database.id, database.namespace, database.outside && outside, services);
    const deps = { authority, client, clock, secrets: stores.secrets };
    return ensureCertificate(project, database, names, deps, signal);
  }

  async observe(project: Project, applied: Applied, context: ProjectContext): Promise<Observation> {
    const { clock, platform, stores } = this.#deps;
    const { conditions, signal, status } = context;
    const { database, credentials, obstacle } = applied;
    const live = readDatabase(project, stores);
    const clusterState = database.paused
      ? undefined
      : await reconcileAndRestore(project, applied, live, context, {
          ...this.#deps,
          driver: this.#driver,
          secrets: this.#credentials,
          isPasswordUsed: (hash) => this.#passwordUse.isUsed(project, hash, signal),
          observe: (written) => this.#observe(written),
        });
    if (!database.paused) {
      status.templateVersion = database.templateVersion;
    }
    const found = { database, live, clusterState };
    const planInMs = changePlan(project, found, this.#driver, this.#deps, context);
    const inForce = this.#deps.catalog().databasePlans.find(({ plan }) => plan === status.plan);
    summarizeDatabase(
      project,
      {
        database,
        driver: this.#driver,
        live,
        clusterState,
        volumes: readVolumes(database, live, obstacle),
        full: live.pods.filter(({ metadata }) => this.#deps.fullVolumes.has(metadata.uid ?? "")),
        address: database.outside && outsideAddress(live.outside, platform),
        credentials,
        now: clock.now(),
        inForce: this.#driver.changesPlansInBackground && inForce,
      },
      conditions,
      status,
    );
    return { requeueAfterMs: shortestDelay(clusterState?.requeueAfterMs, planInMs, DAILY_MS) };
  }

  /** Stops the instances, whatever else is wrong with the project. An apply of the StatefulSet sets the same, in the same name. */
  async #stop(project: Project, signal: AbortSignal): Promise<void> {
    const { client, stores } = this.#deps;
    const { statefulSet } = readDatabase(project, stores);
    if (!statefulSet || statefulSet.spec?.replicas === 0 || statefulSet.metadata?.deletionTimestamp) {
      return;
    }
    const { name = "", namespace, uid } = statefulSet.metadata ?? {};
    const none = { metadata: { uid }, spec: { replicas: 0 } };
    const options = { fieldManager: fieldManagers.project, signal };
    this.#observe(await client.patch(resources.statefulSets, { name, namespace }, none, options));
  }

  #observe(written: KubernetesObject): void {
    const { children } = this.#deps.stores;
    children.find(({ resource }) => resource === resources.statefulSets)?.store.observe(written);
  }
}

/** One kind for each engine. */
export function databaseKinds(
  drivers: ReadonlyMap<string, DatabaseDriver>,
  deps: DatabaseDependencies,
): Partial<Record<Project["spec"]["type"], ProjectKind<DatabasePlan>>> {
  return Object.fromEntries(
    [...drivers]
      .filter(([type]) => isDatabaseType(type as Project["spec"]["type"]))
      .map(([type, driver]) => [type, new DatabaseKind(driver, deps)]),
  );
}

/** Volumes and Secrets, after all that uses them. */
const remainsStep: DeletionStep = {
  delete: [
    resources.networkPolicies,
    resources.roleBindings,
    resources.roles,
    resources.serviceAccounts,
    resources.configMaps,
    resources.persistentVolumeClaims,
    resources.secrets,
  ],
  pending: [resources.persistentVolumeClaims],
  waiting: { reason: "DeletingChildren", message: "The volumes are being removed." },
};

export const deletionSteps: readonly DeletionStep[] = [
  {
    delete: [resources.services],
    pending: [resources.services],
    waiting: { reason: "DeletingChildren", message: "The addresses are being removed." },
  },
  {
    delete: [resources.podDisruptionBudgets, resources.statefulSets],
    pending: [resources.statefulSets, resources.pods],
    waiting: { reason: "DeletingChildren", message: "Instances are being stopped." },
  },
  remainsStep,
];

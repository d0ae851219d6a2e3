/** Projects that are databases or key-value services, whatever their engine. */

import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  annotations,
  credentialKeys,
  credentialsHash,
  type DatabaseCredentials,
  type DatabasePlan,
  fieldManagers,
  isDatabaseType,
  type Project,
} from "@slipway/crds";
import type { Restorer } from "../backups/restore.ts";
import type { Accepted } from "../projects/accept.ts";
import { DELETION_POLL_INTERVAL_MS, runDeletionStep } from "../projects/deletion.ts";
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
import type { GrowthObstacle } from "../workload/growth.ts";
import { acceptDatabase } from "./accept.ts";
import type { MemberAccess } from "./common/member-access.ts";
import { Credentials } from "./credentials.ts";
import type { Database } from "./database.ts";
import { deletionSteps } from "./deletion.ts";
import type { ClusterContext, ClusterState, DatabaseDriver, LiveDatabase } from "./driver.ts";
import { outsideAddress, readBeforeStart, readDatabase } from "./live.ts";
import {
  isRolledOut,
  lateInMs,
  nextPlanStatus,
  type PlanFindings,
  planStatusOf,
  planToBuild,
  reportPlanChange,
} from "./plan-change.ts";
import { releaseMembers } from "./release.ts";
import type { DatabasePlatform } from "./settings.ts";
import { summarizeDatabase, summarizeStop } from "./status.ts";
import type { Authority } from "./tls/authority.ts";
import { type Certificate, certificateNames, ensureCertificate } from "./tls/secret.ts";
import { toDatabase } from "./to-database.ts";
import { growVolumes, readVolumes } from "./volumes.ts";

export interface DatabaseDependencies extends KindDependencies {
  platform: DatabasePlatform;
  authority: Authority;
  restorer: Pick<Restorer, "restore">;
  /** Uids of pods whose volumes are full. */
  fullVolumes: { has(podUid: string): boolean };
  /** Which members commands are run in. */
  members: MemberAccess;
}

/** Until the next reconcile when one is needed immediately, in milliseconds. */
const IMMEDIATE_REQUEUE_MS = 100;

/** A certificate is checked once a day at least, so that it is renewed in time. */
const DAILY_MS = 86_400_000;

/** What one reconcile has applied. */
interface Applied {
  database: Database;
  credentials: DatabaseCredentials;
  certificate: Certificate;
  obstacle?: GrowthObstacle;
}

export class DatabaseKind implements ProjectKind<DatabasePlan, Applied> {
  readonly #driver: DatabaseDriver;
  readonly #deps: DatabaseDependencies;
  readonly #credentials: Credentials;

  constructor(driver: DatabaseDriver, deps: DatabaseDependencies) {
    this.#driver = driver;
    this.#deps = deps;
    this.#credentials = new Credentials({ client: deps.client, secrets: deps.stores.secrets });
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
    return status.planChange?.status === "in_progress" ? this.#changePlan(project, {}, context) : undefined;
  }

  async finalize(project: Project, { signal }: ProjectContext): Promise<Remaining | undefined> {
    for (const step of deletionSteps) {
      const waiting = await runDeletionStep(step, project, this.#deps.client, signal);
      if (waiting) {
        return { ...waiting, retryAfterMs: DELETION_POLL_INTERVAL_MS };
      }
    }
    const { uid = "" } = project.metadata;
    this.#credentials.forget(uid);
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
    return toDatabase(project, accepted, { catalog: catalog(), platform, credentials, live });
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
    const { conditions, status } = context;
    const { database, credentials, obstacle } = applied;
    const live = readDatabase(project, stores);
    const clusterState = database.paused
      ? undefined
      : await this.#reconcileAndRestore(project, applied, live, context);
    const planInMs = this.#changePlan(project, { database, live, clusterState }, context);
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

  /**
   * Advances a change of plan and reports it.
   * @param found what was observed of the database; nothing when its spec was rejected
   * @returns milliseconds until the next decision; undefined when no change runs
   */
  #changePlan(project: Project, found: Partial<PlanFindings>, context: ProjectContext): number | undefined {
    const { clock, platform } = this.#deps;
    if (!this.#driver.changesPlansInBackground) {
      return undefined;
    }
    const { spec } = project;
    const before = planStatusOf(context.status);
    const { database } = found;
    const instances = database?.instances ?? spec.instances ?? 1;
    const seen = {
      now: clock.now(),
      deadlineMs: platform.planChangeMs * instances,
      refused: database !== undefined && database.plan.plan !== planToBuild(spec, before),
      done:
        database !== undefined &&
        spec.plan !== before.plan &&
        isRolledOut(this.#driver, { ...found, database }),
    };
    const planStatus = nextPlanStatus(spec, before, seen);
    const failed = reportPlanChange(planStatus, before, context);
    // What was built for a plan that is not to be is taken back immediately.
    return failed ? IMMEDIATE_REQUEUE_MS : lateInMs(planStatus, seen);
  }

  /** A database that is restored from a backup is not ready before that is loaded. */
  async #reconcileAndRestore(
    project: Project,
    applied: Applied,
    live: LiveDatabase,
    context: ProjectContext,
  ): Promise<ClusterState> {
    const { status, signal } = context;
    const clusterState = await this.#reconcileCluster(project, applied, live, context);
    if (clusterState.primary === undefined || clusterState.credentialsHash === undefined) {
      return clusterState;
    }
    status.database ??= {};
    const { database } = applied;
    const filling = await this.#deps.restorer.restore(project, database, status.database, signal);
    return filling
      ? {
          ...clusterState,
          missing: filling.missing,
          requeueAfterMs: shortestDelay(clusterState.requeueAfterMs, filling.requeueAfterMs),
        }
      : clusterState;
  }

  async #reconcileCluster(
    project: Project,
    { database, credentials, certificate }: Applied,
    live: LiveDatabase,
    { status, log, signal, event }: ProjectContext,
  ): Promise<ClusterState> {
    const { authority, client, clock, members, platform, wake } = this.#deps;
    const { namespace, name } = project.metadata;
    const context: ClusterContext = {
      client: members.clientFor(client, live),
      queryMember: (pod, question) => members.run(pod, question),
      clock,
      authority: (await authority.current()).certificate,
      log,
      signal,
      credentials,
      certificate,
      status: status.database ?? {},
      acceptDataLoss: project.metadata.annotations?.[annotations.acceptDataLoss],
      event,
      wake: () => wake({ namespace, name }),
    };
    const { volumeGraceMs } = platform;
    const observe = (written: KubernetesObject) => this.#observe(written);
    // Before anything that may restart the primary: it has to answer.
    const releaseInMs = await releaseMembers(database, live, this.#driver, {
      ...context,
      volumeGraceMs,
      observe,
    });
    const clusterState = await this.#driver.reconcile(database, live, context);
    const renewed = clusterState.credentialsHash === credentialsHash(credentials);
    if (renewed && credentials[credentialKeys.previousPassword] !== undefined) {
      await this.#credentials.dropPrevious(project, credentials, signal);
    }
    return { ...clusterState, requeueAfterMs: shortestDelay(clusterState.requeueAfterMs, releaseInMs) };
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

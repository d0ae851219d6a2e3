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
import { LOOK_AGAIN_MS, runDeletionStep } from "../projects/deletion.ts";
import type {
  KindDependencies,
  Observation,
  ProjectContext,
  ProjectKind,
  Remaining,
} from "../projects/kind.ts";
import { ownerOf } from "../projects/owner.ts";
import { soonest } from "../projects/soonest.ts";
import { reportGrowth } from "../projects/status.ts";
import type { GrowthObstacle } from "../workload/growth.ts";
import { acceptDatabase } from "./accept.ts";
import { outsideAddress } from "./address.ts";
import type { Members } from "./common/member-access.ts";
import { Credentials } from "./credentials.ts";
import type { Database } from "./database.ts";
import { deletionSteps } from "./deletion.ts";
import type { Engine, LiveDatabase, TendContext, Tended } from "./driver.ts";
import { readBeforeStart, readDatabase } from "./live.ts";
import { isMadeAnew, type PlanFindings, standingOf, tellPlanChange } from "./plan-change.ts";
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
  members: Members;
}

/** Until what was just decided is carried out, in milliseconds. */
const AT_ONCE_MS = 100;

/** A certificate is looked at once a day at least, so that it is renewed in time. */
const DAILY_MS = 86_400_000;

/** What one reconcile has applied. */
interface Applied {
  database: Database;
  credentials: DatabaseCredentials;
  certificate: Certificate;
  obstacle?: GrowthObstacle;
}

export class DatabaseKind implements ProjectKind<DatabasePlan, Applied> {
  readonly #engine: Engine;
  readonly #deps: DatabaseDependencies;
  readonly #credentials: Credentials;

  constructor(engine: Engine, deps: DatabaseDependencies) {
    this.#engine = engine;
    this.#deps = deps;
    this.#credentials = new Credentials({ client: deps.client, secrets: deps.stores.secrets });
  }

  async observeRollout(project: Project, { signal }: ProjectContext): Promise<void> {
    if (project.spec.paused) {
      await this.#stop(project, signal);
    }
  }

  /** Where a plan that is asked for cannot be had, and another one is in force, that one stays. */
  validate(project: Project): DatabasePlan {
    const { catalog, platform } = this.#deps;
    const on = (plan: string) =>
      acceptDatabase(project, { catalog: catalog(), images: platform.images(), engine: this.#engine }, plan);
    const { planChange } = this.#engine;
    const before = project.status?.plan;
    const wanted = planChange?.planToBuild(project.spec, standingOf(project.status)) ?? project.spec.plan;
    try {
      return on(wanted);
    } catch (error) {
      if (!planChange || before === undefined || before === wanted) {
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
      this.#engine.name,
      accepted.organizationId,
      signal,
    );
    const database = this.#derive(project, accepted, credentials, live);
    const certificate = await this.#certify(project, database, live, signal);
    await applier.applyAndPrune(ownerOf(project), this.#engine.desired(database), { log, signal });
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
        return { ...waiting, retryAfterMs: LOOK_AGAIN_MS };
      }
    }
    const { uid = "" } = project.metadata;
    this.#credentials.forget(uid);
    this.#engine.forget?.(uid);
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
    const services = this.#engine.services?.(database);
    const names = certificateNames(database.id, database.namespace, database.outside && outside, services);
    const deps = { authority, client, clock, secrets: stores.secrets };
    return ensureCertificate(project, database, names, deps, signal);
  }

  async observe(project: Project, applied: Applied, context: ProjectContext): Promise<Observation> {
    const { clock, platform, stores } = this.#deps;
    const { conditions, status } = context;
    const { database, credentials, obstacle } = applied;
    const live = readDatabase(project, stores);
    const tended = database.paused ? undefined : await this.#tendAndFill(project, applied, live, context);
    const planInMs = this.#changePlan(project, { database, live, tended }, context);
    const inForce = this.#deps.catalog().databasePlans.find(({ plan }) => plan === status.plan);
    summarizeDatabase(
      project,
      {
        database,
        engine: this.#engine,
        live,
        tended,
        volumes: readVolumes(database, live, obstacle),
        full: live.pods.filter(({ metadata }) => this.#deps.fullVolumes.has(metadata.uid ?? "")),
        address: database.outside && outsideAddress(live.outside, platform),
        credentials,
        now: clock.now(),
        inForce: this.#engine.planChange && inForce,
      },
      conditions,
      status,
    );
    return { requeueAfterMs: soonest(tended?.againInMs, planInMs, DAILY_MS) };
  }

  /**
   * Decides where a change of plan stands, and tells.
   * @param found what was seen of the database; without it, it could not be carried out
   * @returns milliseconds until that is to be decided again; undefined when no change runs
   */
  #changePlan(project: Project, found: Partial<PlanFindings>, context: ProjectContext): number | undefined {
    const { clock, platform } = this.#deps;
    const { planChange } = this.#engine;
    if (!planChange) {
      return undefined;
    }
    const { spec } = project;
    const before = standingOf(context.status);
    const { database } = found;
    const instances = database?.instances ?? spec.instances ?? 1;
    const seen = {
      now: clock.now(),
      deadlineMs: platform.planChangeMs * instances,
      refused: database !== undefined && database.plan.plan !== planChange.planToBuild(spec, before),
      done:
        database !== undefined &&
        spec.plan !== before.plan &&
        isMadeAnew(this.#engine, { ...found, database }),
    };
    const standing = planChange.decide(spec, before, seen);
    const failed = tellPlanChange(standing, before, context);
    // What was built for a plan that is not to be is taken back at once.
    return failed ? AT_ONCE_MS : planChange.lateInMs(standing, seen);
  }

  /** A database that begins with a backup is not ready before that is loaded. */
  async #tendAndFill(
    project: Project,
    applied: Applied,
    live: LiveDatabase,
    context: ProjectContext,
  ): Promise<Tended> {
    const { status, signal } = context;
    const tended = await this.#tend(project, applied, live, context);
    if (tended.primary === undefined || tended.credentialsHash === undefined) {
      return tended;
    }
    status.database ??= {};
    const { database } = applied;
    const filling = await this.#deps.restorer.restore(project, database, status.database, signal);
    return filling
      ? { ...tended, missing: filling.missing, againInMs: soonest(tended.againInMs, filling.againInMs) }
      : tended;
  }

  async #tend(
    project: Project,
    { database, credentials, certificate }: Applied,
    live: LiveDatabase,
    { status, log, signal, event }: ProjectContext,
  ): Promise<Tended> {
    const { authority, client, clock, members, platform, wake } = this.#deps;
    const { namespace, name } = project.metadata;
    const context: TendContext = {
      client: members.clientFor(client, live),
      askMember: (pod, question) => members.run(pod, question),
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
    const releaseInMs = await releaseMembers(database, live, this.#engine, {
      ...context,
      volumeGraceMs,
      observe,
    });
    const tended = await this.#engine.tend(database, live, context);
    const renewed = tended.credentialsHash === credentialsHash(credentials);
    if (renewed && credentials[credentialKeys.previousPassword] !== undefined) {
      await this.#credentials.dropPrevious(project, credentials, signal);
    }
    return { ...tended, againInMs: soonest(tended.againInMs, releaseInMs) };
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
  engines: ReadonlyMap<string, Engine>,
  deps: DatabaseDependencies,
): Partial<Record<Project["spec"]["type"], ProjectKind<DatabasePlan>>> {
  return Object.fromEntries(
    [...engines]
      .filter(([type]) => isDatabaseType(type as Project["spec"]["type"]))
      .map(([type, engine]) => [type, new DatabaseKind(engine, deps)]),
  );
}

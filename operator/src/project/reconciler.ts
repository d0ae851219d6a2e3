/** Brings one project to its desired state, step by step. */

import { type Catalog, fieldManagers, finalizers, labels, type Project } from "@slipway/crds";
import { type Clock, type KubeClient, type KubernetesObject, resources } from "@slipway/kube";
import type { RegistryLogin } from "../registry/ecr.ts";
import { ensureRegistryLogin } from "../registry/login.ts";
import { projectResource } from "../resources.ts";
import {
  Applier,
  controllerReference,
  type EventRecorder,
  ensureFinalizer,
  type ObjectContext,
  objectReconciler,
  outcomeOfError,
  type Reconciler,
  type Result,
  type RuntimeMetrics,
  removeFinalizer,
  retriedIn,
  TerminalError,
  WaitingError,
} from "../runtime/index.ts";
import { type Accepted, accept } from "./accept.ts";
import { leftToApiMs } from "./claiming.ts";
import { DELETION_STEPS, ROUTE_STEP, runDeletionStep } from "./deletion.ts";
import type { DeploymentRecords } from "./deploymentRecords.ts";
import { DeploymentSteps } from "./deploymentSteps.ts";
import { type Claimed, routedHosts } from "./domainClaims.ts";
import { ProjectDomains } from "./domains.ts";
import { exposureAtStart } from "./exposure.ts";
import { HeldRoutes } from "./heldRoutes.ts";
import type { HttpApp } from "./http/app.ts";
import { desired } from "./http/desired.ts";
import { type PodView, type Rollout, readRollout, type Version } from "./http/rollout.ts";
import type { RouteCheck } from "./http/routeCheck.ts";
import { type HttpPlatform, toHttpApp } from "./http/view.ts";
import { type LiveDeployment, readInstances, stopInstances } from "./pause.ts";
import { hasBegunToPull } from "./pulls.ts";
import { collectGarbage } from "./secretGarbage.ts";
import { adoptSecrets, findMissingSecret } from "./secrets.ts";
import type { SlotKeeper } from "./slotKeeper.ts";
import { holdSlot, identityOf, setLimitExceeded } from "./slots.ts";
import { soonest } from "./soonest.ts";
import { childOf, type ProjectStores } from "./stores.ts";
import { type Findings, setPhase, summarize, summarizePause } from "./summarize.ts";

export interface ProjectDependencies {
  client: KubeClient;
  clock: Clock;
  recorder: EventRecorder;
  metrics: RuntimeMetrics;
  stores: ProjectStores;
  catalog: () => Catalog;
  platform: HttpPlatform;
  routeCheck: RouteCheck;
  registryLogin: RegistryLogin;
  slots: SlotKeeper;
  deploymentRecords: DeploymentRecords;
}

type Context = ObjectContext<Project>;

/** Makes the reconciler of projects. */
export function projectReconciler(deps: ProjectDependencies): Reconciler {
  const { client, clock, recorder, stores } = deps;
  const store = stores.projects;
  const steps = new ProjectSteps(deps);
  const reconcile = objectReconciler<Project>({
    client,
    clock,
    recorder,
    store,
    resource: projectResource,
    fieldManager: fieldManagers.project,
    reconcile: (project, context) =>
      project.metadata.deletionTimestamp ? steps.remove(project, context) : steps.bring(project, context),
    summarize: (project, status, conditions, outcome) => {
      setLimitExceeded(conditions, outcome);
      setPhase(project, conditions, status);
    },
  });
  return async (ref, context) => {
    // Before anything else, so that whatever comes after is cleaned up; and before the status is read, since it changes
    // the object.
    const project = store.get(ref.namespace, ref.name);
    const leftMs = project ? leftToApiMs(project, clock.now()) : 0;
    if (leftMs > 0) {
      return { requeueAfterMs: leftMs };
    }
    if (project) {
      const options = { client, resource: projectResource, store, fieldManager: fieldManagers.project };
      await ensureFinalizer(project, finalizers.project, { ...options, signal: context.signal });
    }
    return reconcile(ref, context);
  };
}

class ProjectSteps {
  readonly #deps: ProjectDependencies;
  readonly #applier: Applier;
  readonly #domains: ProjectDomains;
  readonly #held: HeldRoutes;
  readonly #deployments: DeploymentSteps;

  constructor(deps: ProjectDependencies) {
    this.#deps = deps;
    this.#applier = new Applier({
      client: deps.client,
      fieldManager: fieldManagers.project,
      kinds: deps.stores.children,
      metrics: deps.metrics,
    });
    this.#domains = new ProjectDomains(deps);
    this.#held = new HeldRoutes({ ...deps, applier: this.#applier, domains: this.#domains });
    this.#deployments = new DeploymentSteps({
      records: deps.deploymentRecords,
      clock: deps.clock,
      rolloutDeadlineSeconds: deps.platform.rolloutDeadlineSeconds,
      read: (project, version) => this.#readRollout(project, version),
    });
  }

  /** Creates and keeps everything a project needs. */
  async bring(project: Project, context: Context): Promise<Result | undefined> {
    this.#deployments.follow(project, context.status);
    context.status.exposure = exposureAtStart(project);
    await this.#domains.close(project, context.signal);
    await stopInstances(project, this.#deps, context.signal);
    const built = await this.#build(project, context).catch((error: unknown) =>
      this.#hold(project, error, context),
    );
    const { accepted, renewInMs, claimed, app, routesBefore } = built;

    const garbageInMs = await this.#collectGarbage(project, context);
    const look = this.#deployments.look(project, app, context.status, context.conditions);
    const found = { ...this.#observe(project, accepted), ...look };
    const routes = this.#domains.check(project, claimed, found.rollout, routesBefore);
    const release = await this.#domains.release(project, claimed, routes, context.signal);
    const { host, wanted, refused } = claimed;
    const route = wanted === undefined ? undefined : { host, missing: refused ?? routes.missing };
    summarize(project, { ...found, route }, context.conditions, context.status);
    this.#domains.tell(project, claimed, routes, release, context);
    const waits = [routes.retryAfterMs, release.retryAfterMs, renewInMs, garbageInMs, look.againInMs];
    const requeueAfterMs = soonest(...waits);
    if (refused) {
      const error = new TerminalError(refused.reason, refused.message, { condition: "DomainReady" });
      throw retriedIn(error, requeueAfterMs);
    }
    return requeueAfterMs === undefined ? undefined : { requeueAfterMs };
  }

  /** From the spec to the objects of the project, each step a gate for those that follow. */
  async #build(project: Project, context: Context) {
    const accepted = await this.#accept(project, context);
    const renewInMs = await this.#logIn(project, context);
    const claimed = await this.#domains.claim(project, accepted.organizationId, context.signal);
    const app = this.#deployments.begin(project, this.#view(project, accepted, claimed), context.status);
    const routesBefore = this.#domains.versions(project);
    await this.#apply(project, app, context);
    return { accepted, renewInMs, claimed, app, routesBefore };
  }

  /** What must hold of a spec that cannot be carried out; throws why, or what brings it back sooner. */
  async #hold(project: Project, error: unknown, context: Context): Promise<never> {
    if (!outcomeOfError(error).visible) {
      throw error;
    }
    const rollout = readInstances(this.#deployment(project), this.#pods(project));
    if (project.spec.paused) {
      summarizePause(rollout, context.conditions, context.status);
    }
    throw retriedIn(error, await this.#held.keep(project, rollout, context));
  }

  /** Takes everything of a project away; the finalizer falls last. */
  async remove(project: Project, context: Context): Promise<Result | undefined> {
    const { client, stores, slots, deploymentRecords } = this.#deps;
    const { conditions, signal } = context;
    this.#deployments.end(project, context.status);
    for (let step = 0; step < DELETION_STEPS; step += 1) {
      const waiting = await runDeletionStep(step, project, client, signal);
      if (waiting) {
        conditions.set({ type: "Terminating", status: "True", ...waiting });
        conditions.set({ type: "Ready", status: "False", ...waiting });
        return { requeueAfterMs: 2_000 };
      }
      if (step === ROUTE_STEP) {
        const { left, retryAfterMs } = await this.#domains.releaseAll(project, signal);
        if (left > 0) {
          const releasing = { reason: "ReleasingDomain", message: "The hostnames are being given back." };
          conditions.set({ type: "Terminating", status: "True", ...releasing });
          conditions.set({ type: "Ready", status: "False", ...releasing });
          return { requeueAfterMs: retryAfterMs ?? 500 };
        }
      }
    }
    await slots.forget(identityOf(project));
    // The status may never be written again, and what is in it is what the ledger is told of.
    await deploymentRecords.tellLast({ ...project, status: context.status });
    conditions.set({ type: "Ready", status: "False", reason: "DeletingChildren" });
    await removeFinalizer(project, finalizers.project, {
      client,
      resource: projectResource,
      store: stores.projects,
      fieldManager: fieldManagers.project,
      signal,
    });
    return undefined;
  }

  async #accept(project: Project, { conditions, signal }: Context): Promise<Accepted> {
    const { client, stores, catalog, platform, slots } = this.#deps;
    const namespace = stores.namespaces.get(undefined, project.metadata.namespace ?? "");
    const accepted = accept(project, namespace, catalog(), platform.ingress);
    const deps = { client, secrets: stores.secrets };
    const missing = await findMissingSecret(project, deps, signal);
    if (missing) {
      throw new WaitingError(missing.reason, missing.message, {
        condition: "Accepted",
        requeueAfterMs: 5_000,
      });
    }
    await holdSlot(project, accepted.plan, slots);
    await adoptSecrets(project, deps, signal);
    conditions.set({ type: "Accepted", status: "True", reason: "Accepted" });
    return accepted;
  }

  /** Returns after how many milliseconds the login to the image's registry is to be renewed; paused, nobody pulls. */
  async #logIn(project: Project, { conditions, signal }: Context): Promise<number | undefined> {
    const { client, clock, stores, registryLogin: login } = this.#deps;
    if (project.spec.paused) {
      conditions.remove("RegistryReady");
      return undefined;
    }
    return ensureRegistryLogin(
      project,
      conditions,
      { client, clock, secrets: stores.secrets, login },
      signal,
    );
  }

  #view(project: Project, accepted: Accepted, claimed: Claimed): HttpApp {
    const { platform, catalog } = this.#deps;
    const liveReplicas = this.#deployment(project)?.spec?.replicas;
    const from = { catalog: catalog(), platform, hosts: routedHosts(claimed), liveReplicas };
    return toHttpApp(project, accepted, from);
  }

  async #apply(project: Project, app: HttpApp, { log, signal }: Context): Promise<void> {
    const owner = {
      label: { key: labels.project, value: app.id },
      reference: controllerReference(project, projectResource),
      namespace: app.namespace,
    };
    await this.#applier.applyAndPrune(owner, desired(app), { log, signal });
  }

  #collectGarbage(project: Project, { signal }: Context): Promise<number | undefined> {
    const { client, clock, stores } = this.#deps;
    return collectGarbage(project, { client, secrets: stores.secrets, now: clock.now() }, signal);
  }

  #readRollout(project: Project, version: Version): Rollout {
    return readRollout(this.#deployment(project), this.#pods(project), version);
  }

  #deployment(project: Project): LiveDeployment | undefined {
    return childOf<LiveDeployment>(this.#deps.stores, resources.deployments, project);
  }

  #pods(project: Project): PodView[] {
    const { stores } = this.#deps;
    return stores.pods
      .byIndex(labels.project, project.metadata.name)
      .filter(({ metadata }) => metadata.namespace === project.metadata.namespace)
      .map((pod) => ({ ...pod, pullBegun: hasBegunToPull(stores.pulls, pod) }));
  }

  #observe(project: Project, { plan }: Accepted): Pick<Findings, "volume" | "limits"> {
    const claim = childOf<KubernetesObject & { status?: { phase?: string } }>(
      this.#deps.stores,
      resources.persistentVolumeClaims,
      project,
    );
    return {
      volume: project.spec.storage?.persistent ? { bound: claim?.status?.phase === "Bound" } : undefined,
      limits: plan.resources.limits,
    };
  }
}

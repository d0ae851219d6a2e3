/** Brings one project to its desired state, step by step. */

import { type Catalog, fieldManagers, finalizers, labels, type Project } from "@slipway/crds";
import { type Clock, type KubeClient, type KubernetesObject, resources } from "@slipway/kube";
import { claimHostname, releaseHostnames } from "../domainclaim/claims.ts";
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
  type Reconciler,
  type Result,
  type RuntimeMetrics,
  removeFinalizer,
  TerminalError,
  WaitingError,
} from "../runtime/index.ts";
import { type Accepted, accept } from "./accept.ts";
import { DELETION_STEPS, ROUTE_STEP, runDeletionStep } from "./deletion.ts";
import type { DeploymentRecords } from "./deploymentRecords.ts";
import { DeploymentSteps } from "./deploymentSteps.ts";
import type { HttpApp } from "./http/app.ts";
import { desired } from "./http/desired.ts";
import { type DeploymentView, type Rollout, readRollout, type Version } from "./http/rollout.ts";
import type { MissingRoute, RouteCheck } from "./http/routeCheck.ts";
import { type HttpPlatform, toHttpApp, wantedHost } from "./http/view.ts";
import { collectGarbage } from "./secretGarbage.ts";
import { adoptSecrets, findMissingSecret } from "./secrets.ts";
import { childOf, type ProjectStores } from "./stores.ts";
import { type Finding, type Findings, setPhase, summarize } from "./summarize.ts";

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
    summarize: (project, status, conditions) => setPhase(project, conditions, status),
  });
  return async (ref, context) => {
    // Before anything else, so that whatever comes after is cleaned up; and before the status is read, since it changes
    // the object.
    const project = store.get(ref.namespace, ref.name);
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
  readonly #deployments: DeploymentSteps;

  constructor(deps: ProjectDependencies) {
    this.#deps = deps;
    this.#applier = new Applier({
      client: deps.client,
      fieldManager: fieldManagers.project,
      kinds: deps.stores.children,
      metrics: deps.metrics,
    });
    this.#deployments = new DeploymentSteps({
      records: deps.deploymentRecords,
      clock: deps.clock,
      rolloutDeadlineSeconds: deps.platform.rolloutDeadlineSeconds,
      read: (project, version) => this.#readRollout(project, version),
    });
  }

  /** Creates and keeps everything a project needs. */
  async bring(project: Project, context: Context): Promise<Result | undefined> {
    const { platform } = this.#deps;
    this.#deployments.follow(project, context.status);
    const accepted = await this.#accept(project, context);
    const renewInMs = await this.#logIn(project, context);
    const host = wantedHost(project, platform.domainZone);
    const held = host !== undefined && (await this.#claim(project, accepted, host, context));
    const app = this.#deployments.begin(
      project,
      this.#view(project, accepted, held ? host : undefined),
      context.status,
    );
    const routeChanged = await this.#apply(project, app, context);
    await releaseHostnames(project, held ? [host] : [], this.#claims, context.signal);

    const garbageInMs = await this.#collectGarbage(project, context);
    const look = this.#deployments.look(project, app, context.status, context.conditions);
    const found = { ...this.#observe(project, accepted), ...look };
    const taken: Finding = {
      reason: "DomainTaken",
      message: `The domain ${host} belongs to another project.`,
    };
    const missing = held ? await this.#checkRoute(project, host, routeChanged, found) : undefined;
    const route = host === undefined ? undefined : { host, missing: held ? missing : taken };
    summarize(project, { ...found, route }, context.conditions, context.status);
    if (host !== undefined && !held) {
      throw new TerminalError(taken.reason, taken.message, { condition: "DomainReady" });
    }
    const waits = [missing?.retryAfterMs, renewInMs, garbageInMs, look.againInMs].filter(
      (wait) => wait !== undefined,
    );
    return waits.length > 0 ? { requeueAfterMs: Math.min(...waits) } : undefined;
  }

  /** Takes everything of a project away; the finalizer falls last. */
  async remove(project: Project, context: Context): Promise<Result | undefined> {
    const { client, stores, routeCheck } = this.#deps;
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
        await releaseHostnames(project, [], this.#claims, signal);
      }
    }
    routeCheck.forget(project.metadata.uid ?? "");
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

  get #claims() {
    return { client: this.#deps.client, claims: this.#deps.stores.claims };
  }

  async #accept(project: Project, { conditions, signal }: Context): Promise<Accepted> {
    const { client, stores, catalog, platform } = this.#deps;
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
    await adoptSecrets(project, deps, signal);
    conditions.set({ type: "Accepted", status: "True", reason: "Accepted" });
    return accepted;
  }

  /** Returns after how many milliseconds the login to the image's registry is to be renewed. */
  #logIn(project: Project, { conditions, signal }: Context): Promise<number | undefined> {
    const { client, clock, stores, registryLogin: login } = this.#deps;
    return ensureRegistryLogin(
      project,
      conditions,
      { client, clock, secrets: stores.secrets, login },
      signal,
    );
  }

  #claim(
    project: Project,
    { organizationId }: Accepted,
    hostname: string,
    context: Context,
  ): Promise<boolean> {
    const kind = project.spec.subdomain === undefined ? "default" : "subdomain";
    return claimHostname(
      project,
      { hostname, organization: organizationId, kind },
      this.#claims,
      context.signal,
    );
  }

  #view(project: Project, accepted: Accepted, host: string | undefined): HttpApp {
    const { stores, platform, catalog } = this.#deps;
    const deployment = childOf<KubernetesObject & DeploymentView>(stores, resources.deployments, project);
    const liveReplicas = deployment?.spec?.replicas;
    return toHttpApp(project, accepted, { catalog: catalog(), platform, host, liveReplicas });
  }

  /** Returns whether the Ingress was written. */
  async #apply(project: Project, app: HttpApp, { log, signal }: Context): Promise<boolean> {
    const { stores } = this.#deps;
    const before = childOf(stores, resources.ingresses, project)?.metadata?.resourceVersion;
    const owner = {
      label: { key: labels.project, value: app.id },
      reference: controllerReference(project, projectResource),
      namespace: app.namespace,
    };
    await this.#applier.applyAndPrune(owner, desired(app), { log, signal });
    return childOf(stores, resources.ingresses, project)?.metadata?.resourceVersion !== before;
  }

  #collectGarbage(project: Project, { signal }: Context): Promise<number | undefined> {
    const { client, clock, stores } = this.#deps;
    return collectGarbage(project, { client, secrets: stores.secrets, now: clock.now() }, signal);
  }

  #readRollout(project: Project, version: Version): Rollout {
    const { stores } = this.#deps;
    const deployment = childOf<KubernetesObject & DeploymentView>(stores, resources.deployments, project);
    const pods = stores.pods
      .byIndex(labels.project, project.metadata.name)
      .filter(({ metadata }) => metadata.namespace === project.metadata.namespace);
    return readRollout(deployment, pods, version);
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

  /** Asks the ingress only when a route, or the instances behind it, are new. */
  async #checkRoute(
    project: Project,
    host: string,
    changed: boolean,
    { rollout }: Findings,
  ): Promise<MissingRoute | undefined> {
    const isTrue = (type: string) =>
      project.status?.conditions?.some((condition) => condition.type === type && condition.status === "True");
    const known = !changed && isTrue("DomainReady") && project.status?.domain === host;
    if (known && (isTrue("Ready") || !rollout.complete || project.spec.paused)) {
      return undefined;
    }
    if (!rollout.complete || project.spec.paused) {
      return { reason: "DomainPending", message: "The route waits for an instance." };
    }
    return this.#deps.routeCheck.check(project.metadata.uid ?? "", host);
  }
}

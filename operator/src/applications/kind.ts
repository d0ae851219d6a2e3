/**
 * Applications: projects of type http, instances behind a public or private address, and of type worker, instances without one.
 * This file is the project kind of both. Its input
 * is `view.ts` and `app.ts`; `desired.ts` and `desired/` derive the objects, `access*.ts` the access list of the route;
 * `rollout*.ts` follow the rollout of a version, and `recreate*.ts` replace the version of a project with a volume.
 */

import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  type Catalog,
  type Deployment,
  type HttpPlan,
  isOpenAccess,
  labels,
  type Project,
} from "@slipway/crds";
import { type Claimed, routedHosts } from "../domains/project-claims.ts";
import { exposureAtStart, ProjectDomains } from "../domains/project-domains.ts";
import { RejectedSpecRoutes } from "../domains/rejected-spec-routes.ts";
import type { RouteCheck } from "../domains/route-check.ts";
import type { RouteVersions } from "../domains/routes.ts";
import { endOneOffRuns } from "../jobs/runs/end-one-off.ts";
import { type Accepted, planOfImage, refuse } from "../projects/accept.ts";
import { DELETION_POLL_INTERVAL_MS, type DeletionStep, runDeletionStep } from "../projects/deletion.ts";
import { isPreDeployDone } from "../projects/deployments/pre-deploy.ts";
import { hasBegunToPull } from "../projects/images/pulls.ts";
import {
  type KindDependencies,
  type Observation,
  ownerOf,
  type ProjectContext,
  type ProjectKind,
  type Remaining,
  shortestDelay,
} from "../projects/kind.ts";
import { type LiveDeployment, readInstances, stopInstances } from "../projects/pause.ts";
import { probeKillsOf } from "../projects/probe-kills.ts";
import { summarize, summarizePause } from "../projects/status.ts";
import { childOf, type Pod } from "../projects/stores.ts";
import { claimOf, growVolume, isVolumeBound } from "../projects/volume.ts";
import { TerminalError } from "../reconcile-errors.ts";
import { hasValues } from "../references/targets.ts";
import { type SleepPlatform, SleepSteps } from "../sleep/steps.ts";
import { withEarlierCopies } from "../variable-groups/earlier.ts";
import { type GrowthObstacle, withLiveClaim } from "../workload/pvc.ts";
import { withTemplateVersion } from "../workload/template-version.ts";
import type { AllowList } from "./access.ts";
import type { HttpApp } from "./app.ts";
import { instancesStep, remainsStep, routeStep } from "./deletion-steps.ts";
import { settingsHash } from "./desired/deployment.ts";
import { desired } from "./desired.ts";
import { type InstanceRestarts, restartNote } from "./instance-restarts.ts";
import type { PodView } from "./pod-problem.ts";
import { PreDeploySteps } from "./pre-deploy-steps.ts";
import { RecreateSteps, type Running } from "./recreate-steps.ts";
import { leastInstances, type RequestScaling, reportRequestScaling } from "./requests/target.ts";
import { readRollout } from "./rollout.ts";
import { RolloutSteps } from "./rollout-steps.ts";
import { lastTermination, terminationsOf } from "./terminations.ts";
import { type HttpPlatform, rolloutDeadlineSeconds, toHttpApp } from "./view.ts";

export interface HttpDependencies extends KindDependencies {
  platform: HttpPlatform;
  routeCheck: RouteCheck;
  restarts: InstanceRestarts;
  /** What requests of projects need; without it none is scaled by them. */
  requestScaling?: RequestScaling;
  /** How projects sleep; without it none does. */
  sleep?: SleepPlatform;
}

/** What one reconcile has applied, and the routes as they were before. */
interface Applied {
  accepted: Accepted<HttpPlan>;
  running: Running;
  claimed: Claimed;
  routesBefore: RouteVersions;
  obstacle?: GrowthObstacle;
  /** Milliseconds until it is to be decided again whether it sleeps. */
  sleepInMs?: number;
}

export class HttpKind implements ProjectKind<HttpPlan, Applied> {
  readonly #deps: HttpDependencies;
  readonly #domains: ProjectDomains;
  readonly #rejectedSpec: RejectedSpecRoutes;
  readonly #recreate: RecreateSteps;
  readonly #preDeploy: PreDeploySteps;
  readonly #rollouts: RolloutSteps;
  readonly #sleep: SleepSteps;

  constructor(deps: HttpDependencies) {
    this.#deps = deps;
    this.#domains = new ProjectDomains(deps);
    this.#rejectedSpec = new RejectedSpecRoutes({ ...deps, domains: this.#domains });
    this.#recreate = new RecreateSteps(deps);
    this.#preDeploy = new PreDeploySteps(deps);
    this.#sleep = new SleepSteps(deps);
    this.#rollouts = new RolloutSteps({
      clock: deps.clock,
      rolloutDeadlineSeconds: (project) => rolloutDeadlineSeconds(project, deps.platform),
      read: (project, version) => readRollout(this.#deployment(project), this.#pods(project), version),
    });
  }

  async observeRollout(project: Project, context: ProjectContext): Promise<void> {
    const { status, signal } = context;
    const failure = await this.#preDeploy.observe(project, context);
    this.#deps.deployments.follow(project, status, (newest) =>
      isPreDeployDone(newest) ? this.#rollouts.progress(project, newest) : { complete: false, failure },
    );
    status.exposure = exposureAtStart(project);
    await this.#domains.close(project, signal);
    if (project.spec.paused) {
      await this.#preDeploy.stopOutdated(project, status, signal);
    }
    await stopInstances(project, this.#deps, signal);
  }

  validate(project: Project): HttpPlan {
    const { catalog, platform } = this.#deps;
    return acceptHttp(project, catalog(), platform.ingress);
  }

  async apply(project: Project, accepted: Accepted<HttpPlan>, context: ProjectContext): Promise<Applied> {
    const { applier, deployments } = this.#deps;
    const { log, signal, status } = context;
    const claimed = await this.#domains.claim(project, accepted.organizationId, signal);
    const forNew = this.#deps.platform.templateVersion;
    const view = withTemplateVersion(this.#view(project, accepted, claimed), status, settingsHash, forNew);
    const replaces = deployments.begin(project, settingsHash(view), status, accepted.valuesOnly);
    const sleep = this.#sleep.resolve(project, accepted.plan, {
      status,
      rollout: readInstances(this.#deployment(project), this.#pods(project)),
      hosts: [view.route?.host, ...(view.route?.customHosts ?? [])].filter((host) => host !== undefined),
      wakeMs: rolloutDeadlineSeconds(project, this.#deps.platform) * 1_000,
    });
    if (sleep.isObstructed) {
      const message =
        "The ingress does not send its requests to the activator: it runs on, and is tried in an hour.";
      context.event("Warning", "SleepObstructed", message);
    }
    const wanted = { ...view, replaces, sleep: sleep.app, ...(sleep.isAsleep ? { replicas: 0 } : {}) };
    status.templateVersion = view.templateVersion;
    const gate = await this.#preDeploy.resolve(project, wanted, context);
    const choices = {
      status,
      live: this.#deployment(project),
      instances: this.#instances(project),
      viewOf: (previous: Deployment) => {
        const { earlier, resolved } = withEarlierCopies(
          project,
          previous,
          accepted.resolved,
          this.#deps.stores,
        );
        return hasValues(earlier.spec, resolved)
          ? {
              ...this.#view(earlier, { ...this.#withPlanOf(earlier, accepted), resolved }, claimed),
              templateVersion: view.templateVersion,
              replaces: true,
              sleep: sleep.app,
            }
          : undefined;
      },
      signal,
    };
    const running = gate
      ? await this.#recreate.hold(project, wanted, gate, choices)
      : await this.#recreate.resolve(project, wanted, choices);
    const routesBefore = this.#domains.versions(project);
    const objects = withLiveClaim(desired(running.applied), claimOf(this.#deps.stores, project));
    // The number of instances is the autoscaler's: a number that changed since it was read is not written back.
    const isScaled = running.applied.autoscaling !== undefined && running.applied.replicas > 0;
    const onlyAsRead = ({ kind }: KubernetesObject) => isScaled && kind === resources.deployments.kind;
    await applier.applyAndPrune(ownerOf(project), objects, { log, signal, onlyAsRead });
    const { obstacle } = await growVolume(project, this.#deps, context);
    return { accepted, running, claimed, routesBefore, obstacle, sleepInMs: sleep.againInMs };
  }

  async holdRejectedSpec(project: Project, context: ProjectContext): Promise<number | undefined> {
    const rollout = readInstances(this.#deployment(project), this.#pods(project));
    if (project.spec.paused) {
      summarizePause(rollout, context.conditions, context.status);
    }
    const wakeMs = rolloutDeadlineSeconds(project, this.#deps.platform) * 1_000;
    const { status, signal } = context;
    const sleepInMs = await this.#sleep.wakeRejected(project, { rollout, status, wakeMs }, signal);
    return shortestDelay(sleepInMs, await this.#rejectedSpec.reconcile(project, rollout, context));
  }

  async finalize(project: Project, context: ProjectContext): Promise<Remaining | undefined> {
    const { signal } = context;
    const { retention } = this.#deps;
    await retention.begin(project, signal);
    this.#deps.restarts.forget(project.metadata.uid ?? "");
    this.#sleep.forget(project);
    await this.#recreate.clear(project, signal);
    if ((await this.#preDeploy.clear(project, signal)) > 0) {
      const message = "The pre-deploy command is being stopped.";
      return { reason: "DeletingChildren", message, retryAfterMs: DELETION_POLL_INTERVAL_MS };
    }
    // Neither its routes nor its instances wait for them: a charge may take as long as the ledger is away.
    const runs = await endOneOffRuns(project, this.#deps, signal);
    const run = async (step: DeletionStep) => {
      const waiting = await runDeletionStep(step, project, this.#deps, signal);
      return waiting && { ...waiting, retryAfterMs: DELETION_POLL_INTERVAL_MS };
    };
    const waiting =
      (await run(routeStep)) ?? (await this.#releaseDomains(project, signal)) ?? (await run(instancesStep));
    if (waiting) {
      return waiting;
    }
    if (runs > 0) {
      const message = "One-off runs are being ended and charged.";
      return { reason: "DeletingChildren", message, retryAfterMs: DELETION_POLL_INTERVAL_MS };
    }
    await retention.complete(project, context);
    return run(remainsStep);
  }

  async #releaseDomains(project: Project, signal: AbortSignal): Promise<Remaining | undefined> {
    const { left, retryAfterMs = 500 } = await this.#domains.releaseAll(project, signal);
    const message = "The hostnames are being given back.";
    return left > 0 ? { reason: "ReleasingDomain", message, retryAfterMs } : undefined;
  }

  async observe(project: Project, applied: Applied, context: ProjectContext): Promise<Observation> {
    const { accepted, running, claimed, routesBefore, obstacle, sleepInMs } = applied;
    const { conditions, status, signal } = context;
    const assessment = this.#rollouts.assess(project, running, status, conditions);
    const routes = this.#domains.check(project, claimed, assessment.rollout, routesBefore);
    const release = await this.#domains.release(project, claimed, routes, signal);
    const { host, wanted, refused } = claimed;
    const route = wanted === undefined ? undefined : { host, missing: refused ?? routes.missing };
    const volume = project.spec.storage?.persistent
      ? { bound: isVolumeBound(this.#deps.stores, project), obstacle }
      : undefined;
    const { limits } = accepted.plan.resources;
    summarize(project, { ...assessment, volume, limits, route }, conditions, status);
    this.#domains.report(project, claimed, routes, release, context);
    this.#reportTerminations(project, context);
    reportRequestScaling(project, this.#deps.requestScaling, context);
    return {
      requeueAfterMs: shortestDelay(
        routes.retryAfterMs,
        release.retryAfterMs,
        assessment.againInMs,
        sleepInMs,
      ),
      refused: refused && new TerminalError(refused.reason, refused.message, { condition: "DomainReady" }),
    };
  }

  /** What instances ended by: the last one in the status, and an Event and a count for each restart. */
  #reportTerminations(project: Project, { status, event }: ProjectContext): void {
    const terminations = terminationsOf(this.#pods(project));
    const reported = status.lastTermination?.finishedAt;
    for (const restart of this.#deps.restarts.observe(project.metadata.uid ?? "", terminations, reported)) {
      event("Warning", "InstanceRestarted", restartNote(restart));
    }
    status.lastTermination = lastTermination(terminations, status);
  }

  #view(project: Project, accepted: Accepted<HttpPlan>, claimed: Claimed): HttpApp {
    const { platform, catalog } = this.#deps;
    const liveReplicas = this.#deployment(project)?.spec?.replicas;
    const least = leastInstances(project, this.#deps);
    const from = { catalog: catalog(), platform, hosts: routedHosts(claimed), liveReplicas, least };
    return toHttpApp(project, accepted, from);
  }

  #deployment(project: Project): LiveDeployment | undefined {
    return childOf<LiveDeployment>(this.#deps.stores, resources.deployments, project);
  }

  /** The plan of earlier settings, while the catalog has it. */
  #withPlanOf({ spec }: Project, accepted: Accepted<HttpPlan>): Accepted<HttpPlan> {
    const plan = this.#deps.catalog().httpPlans.find(({ plan }) => plan === spec.plan);
    return plan ? { ...accepted, plan } : accepted;
  }

  #instances(project: Project): Pod[] {
    return this.#deps.stores.pods
      .byIndex(labels.project, project.metadata.name)
      .filter(({ metadata }) => metadata.namespace === project.metadata.namespace);
  }

  /** The instances, and the pods that pull an image for the next ones. */
  #pods(project: Project): PodView[] {
    const { pulls, kills } = this.#deps.stores;
    const pods = [...this.#instances(project), ...this.#recreate.pulling(project)];
    return pods.map((pod) => ({
      ...pod,
      pullBegun: hasBegunToPull(pulls, pod),
      probeKills: probeKillsOf(kills, pod),
    }));
  }
}

/** @throws TerminalError about the condition `Accepted` */
export function acceptHttp(project: Project, catalog: Catalog, ingress: { allowList: AllowList }): HttpPlan {
  const { spec } = project;
  const type = spec.type === "worker" ? "workers" : "HTTP projects";
  const plan = planOfImage(project, catalog, { plans: catalog.httpPlans, type });
  checkFeatures(project, plan);
  if (ingress.allowList === "none" && spec.exposure === "public" && !isOpenAccess(spec.networkAccess)) {
    throw refuse("FeatureNotSupported", "The ingress of this platform enforces no access lists.");
  }
  return plan;
}

function checkFeatures({ spec }: Project, { plan, capabilities, maxInstances }: HttpPlan): void {
  const lacks = (what: string) => refuse("FeatureNotInPlan", `The plan ${plan} has no ${what}.`);
  if (spec.healthcheck?.enabled && !capabilities.healthcheck) {
    throw lacks("health check");
  }
  if (spec.autoscaling?.enabled && !capabilities.autoscaling) {
    throw lacks("autoscaling");
  }
  const most = Math.max(spec.instances ?? 1, spec.autoscaling?.enabled ? spec.autoscaling.maxInstances : 0);
  if (most > maxInstances) {
    throw refuse("FeatureNotInPlan", `The plan ${plan} has at most ${maxInstances} instances.`);
  }
  if (!isOpenAccess(spec.networkAccess) && !capabilities.network_access) {
    throw lacks("access lists");
  }
}

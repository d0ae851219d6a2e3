/** Has a project sleep and wake within its reconcile. The rules are in `decision.ts`. */

import { randomUUID } from "node:crypto";
import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  activatorServiceName,
  fieldManagers,
  type HttpPlan,
  isWakeRequested,
  type Project,
  type ProjectStatus,
  sleepsAfterSeconds,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { AppSleep } from "../applications/app.ts";
import type { Rollout } from "../applications/rollout.ts";
import { isOwnIngress } from "../domains/project-domains.ts";
import type { RouteCheck } from "../domains/route-check.ts";
import type { LiveDeployment } from "../projects/pause.ts";
import { childOf, childrenOf, type ProjectStores } from "../projects/stores.ts";
import { decideSleep, isAsleep, isAtActivator, type SleepInput } from "./decision.ts";

/** What of the platform matters to sleep; absent where no project sleeps. */
export interface SleepPlatform {
  /** Addresses of the activator's Service; none while there is no such Service. */
  activator: () => readonly string[];
  /** Namespace of the activator. */
  namespace: string;
  /** Seconds since the last request that reached a project; undefined while unknown. */
  idleSeconds: (project: Project) => number | undefined;
}

export interface SleepDependencies {
  client: KubeClient;
  clock: Clock;
  stores: ProjectStores;
  routeCheck: RouteCheck;
  sleep?: SleepPlatform;
}

/** What a reconcile has decided. */
export interface Resolved {
  /** Input of the project's objects; absent where it may not sleep. */
  app?: AppSleep;
  /** No instance is to run. */
  isAsleep: boolean;
  /** Milliseconds until it is to be decided again, in any case. */
  againInMs?: number;
}

/** How long a project runs that could not enter its sleep, such as one whose ingress refuses the operator's probe. */
const RETRY_MS = 3_600_000;

type IngressView = KubernetesObject & {
  spec?: { rules?: { http?: { paths?: { backend?: { service?: { name?: string } } }[] } }[] };
};

export class SleepSteps {
  readonly #deps: SleepDependencies;
  /** Monotonic times by the project's uid: since when the ingress sends its requests to the activator, or its instances are ready. */
  readonly #confirmedAt = new Map<string, number>();
  readonly #readyAt = new Map<string, number>();
  /** Monotonic times by the project's uid: until when it does not enter a sleep. */
  readonly #awakeUntil = new Map<string, number>();

  constructor(deps: SleepDependencies) {
    this.#deps = deps;
  }

  /** Decides, and writes the decision into the status. @param hosts that are routed to the project */
  resolve(
    project: Project,
    plan: HttpPlan,
    from: {
      status: ProjectStatus;
      rollout: Rollout;
      hosts: readonly string[];
      wakeMs: number;
    },
  ): Resolved {
    const { sleep: platform } = this.#deps;
    const { status, rollout, hosts } = from;
    const addresses = platform?.activator() ?? [];
    const afterSeconds = sleepsAfterSeconds(project, plan);
    const isOut = project.spec.paused || (afterSeconds === undefined && !status.sleep);
    if (platform === undefined || addresses.length === 0 || isOut) {
      status.sleep = undefined;
      this.forget(project);
      return { isAsleep: false };
    }
    const input = this.#input(project, { ...from, afterSeconds, platform });
    const { sleep, againInMs, isObstructed = false } = decideSleep(input);
    status.sleep = sleep;
    if (sleep === undefined && input.sleep !== undefined) {
      this.#end(project, isObstructed);
    }
    const isProbed = sleep?.phase === "entering" && hosts.length > 0 && rollout.serving > 0;
    return {
      app: {
        activator: { addresses, namespace: platform.namespace },
        routed: isAtActivator(sleep),
      },
      isAsleep: isAsleep(sleep),
      againInMs: isProbed ? Math.min(againInMs ?? 1_000, 1_000) : againInMs,
    };
  }

  /** Starts the instances of a project that sleeps and whose spec is rejected: what ran before is to run. */
  async wakeRejected(
    project: Project,
    rollout: Rollout,
    status: ProjectStatus,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, clock, stores } = this.#deps;
    const { sleep } = status;
    if (sleep === undefined || project.spec.paused) {
      status.sleep = undefined;
      return;
    }
    const deployment = childOf<LiveDeployment>(stores, resources.deployments, project);
    if (deployment !== undefined && deployment.spec?.replicas === 0) {
      const { name = "", namespace, uid } = deployment.metadata ?? {};
      const some = { metadata: { uid }, spec: { replicas: project.spec.instances ?? 1 } };
      const options = { fieldManager: fieldManagers.project, signal };
      const written = await client.patch(resources.deployments, { name, namespace }, some, options);
      stores.children.find(({ resource }) => resource === resources.deployments)?.store.observe(written);
      status.sleep = { ...sleep, phase: "waking", since: clock.now().toISOString() };
      return;
    }
    status.sleep = rollout.serving > 0 ? undefined : sleep;
  }

  /** Forgets a project. */
  forget(project: Project): void {
    this.#end(project, false);
    this.#awakeUntil.delete(project.metadata.uid ?? "");
  }

  #end(project: Project, isObstructed: boolean): void {
    const uid = project.metadata.uid ?? "";
    if (isObstructed) {
      this.#awakeUntil.set(uid, this.#deps.clock.monotonic() + RETRY_MS);
    }
    this.#confirmedAt.delete(uid);
    this.#readyAt.delete(uid);
    this.#deps.routeCheck.retain(project, "activator", new Set());
  }

  #input(
    project: Project,
    from: {
      status: ProjectStatus;
      rollout: Rollout;
      hosts: readonly string[];
      wakeMs: number;
      afterSeconds: number | undefined;
      platform: SleepPlatform;
    },
  ): SleepInput {
    const { status, rollout, hosts, wakeMs, afterSeconds, platform } = from;
    const { metadata } = project;
    const isReady = rollout.complete && rollout.wanted > 0 && rollout.serving >= rollout.wanted;
    const isConfirmed =
      status.sleep?.phase === "entering" &&
      this.#isRouted(project) &&
      hosts.length > 0 &&
      hosts.map((host) => this.#deps.routeCheck.isAtActivator(project, host)).every((is) => is);
    const readyMs = this.#elapsed(this.#readyAt, project, isReady);
    const idleSeconds = platform.idleSeconds(project);
    return {
      sleep: status.sleep,
      afterSeconds,
      // The request that has woken it is counted at its end, and a new version has had none.
      idleSeconds: idleSeconds && Math.min(idleSeconds, Math.floor((readyMs ?? 0) / 1_000)),
      isSettled: isReady && this.#mayEnter(project, status) && hosts.length > 0,
      isDeploying: status.deployments?.[0]?.status === "in_progress",
      isWakeRequested: isWakeRequested({ ...project, status }),
      generation: metadata.generation ?? 0,
      isRouted: this.#isRouted(project),
      confirmedMs: this.#elapsed(this.#confirmedAt, project, isConfirmed),
      readyMs,
      wakeMs,
      now: this.#deps.clock.now(),
      newId: () => randomUUID().slice(0, 8),
    };
  }

  #mayEnter({ metadata }: Project, { phase, sleep }: ProjectStatus): boolean {
    const awakeUntil = this.#awakeUntil.get(metadata.uid ?? "") ?? 0;
    return sleep !== undefined || (phase === "running" && this.#deps.clock.monotonic() >= awakeUntil);
  }

  /** Whether every route that is written leads to the activator. */
  #isRouted(project: Project): boolean {
    const name = activatorServiceName(project.metadata.name);
    const ingresses = childrenOf<IngressView>(this.#deps.stores, resources.ingresses, project);
    const own = ingresses.filter((ingress) => isOwnIngress(project, ingress));
    return (
      own.length > 0 &&
      own.every(({ spec }) =>
        spec?.rules?.every(({ http }) =>
          http?.paths?.every(({ backend }) => backend?.service?.name === name),
        ),
      )
    );
  }

  /** Since when something is so, without a gap, in milliseconds; undefined while it is not. */
  #elapsed(since: Map<string, number>, { metadata }: Project, isSo: boolean): number | undefined {
    const uid = metadata.uid ?? "";
    if (!isSo) {
      since.delete(uid);
      return undefined;
    }
    const now = this.#deps.clock.monotonic();
    const begun = since.get(uid) ?? now;
    since.set(uid, begun);
    return now - begun;
  }
}

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
  type Sleep,
  sleepsAfterSeconds,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { AppSleep } from "../applications/app.ts";
import type { Rollout } from "../applications/rollout.ts";
import { isOwnIngress } from "../domains/project-domains.ts";
import type { RouteCheck } from "../domains/route-check.ts";
import { shortestDelay } from "../projects/kind.ts";
import type { LiveDeployment } from "../projects/pause.ts";
import { childOf, childrenOf, type ProjectStores } from "../projects/stores.ts";
import { BY_REFERENCE } from "../references/sources.ts";
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
  /** It did not come to sleep, since the ingress does not send requests to the activator. */
  isObstructed?: boolean;
}

/** How long the objects of a project stay that is no longer to sleep: the ingress follows its routes later. */
const KEPT_MS = 60_000;
/** Pause before the activator's addresses are observed again where there are none for a moment. */
const ADDRESSES_MS = 5_000;

/** How long a project runs that could not enter its sleep, such as one whose ingress refuses the operator's probe. */
const RETRY_MS = 3_600_000;

type SliceView = KubernetesObject & { endpoints?: { addresses?: string[] }[] };
type IngressView = KubernetesObject & {
  spec?: { rules?: { http?: { paths?: { backend?: { service?: { name?: string } } }[] } }[] };
};

/** Of a project whose spec is rejected: it wakes, whatever else is so. */
const REJECTED = {
  afterSeconds: undefined,
  idleSeconds: undefined,
  isSettled: false,
  isDeploying: false,
  isWakeRequested: true,
  generation: 0,
  isRouted: true,
  confirmedMs: undefined,
  newId: () => "",
};

export class SleepSteps {
  readonly #deps: SleepDependencies;
  /** Monotonic times by the project's uid: since when the ingress sends its requests to the activator, or its instances are ready. */
  readonly #confirmedAt = new Map<string, number>();
  readonly #readyAt = new Map<string, number>();
  /** Monotonic times by the project's uid: until when it does not enter a sleep. */
  readonly #awakeUntil = new Map<string, number>();
  /** Monotonic times by the project's uid: until when its objects stay that lead to the activator. */
  readonly #keptUntil = new Map<string, number>();

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
    const addresses = this.#addresses(project);
    const afterSeconds = this.#isReferenced(project) ? undefined : sleepsAfterSeconds(project, plan);
    const now = this.#deps.clock.monotonic();
    const keptMs = (this.#keptUntil.get(project.metadata.uid ?? "") ?? now) - now;
    const isOut = project.spec.paused || (afterSeconds === undefined && !status.sleep && keptMs <= 0);
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
      this.#keptUntil.set(project.metadata.uid ?? "", now + KEPT_MS);
    }
    if (sleep !== undefined && input.sleep === undefined) {
      // What was answered about an earlier sleep says nothing of this one.
      this.#deps.routeCheck.retain(project, "activator", new Set());
      this.#confirmedAt.delete(project.metadata.uid ?? "");
    }
    const isProbed = sleep?.phase === "entering" && hosts.length > 0 && rollout.serving > 0;
    return {
      app: {
        activator: { addresses, namespace: platform.namespace },
        routed: isAtActivator(sleep),
      },
      isAsleep: isAsleep(sleep),
      againInMs: shortestDelay(
        isProbed ? 1_000 : undefined,
        againInMs,
        platform.activator().length === 0 ? ADDRESSES_MS : undefined,
        afterSeconds === undefined && keptMs > 0 ? keptMs : undefined,
      ),
      isObstructed,
    };
  }

  /** Addresses of the activator; where its Service is away for a moment, those that the project's slice has. */
  #addresses(project: Project): readonly string[] {
    const { sleep: platform, stores } = this.#deps;
    const addresses = platform?.activator() ?? [];
    const [live] = childrenOf<SliceView>(stores, resources.endpointSlices, project);
    return platform === undefined || addresses.length > 0
      ? addresses
      : (live?.endpoints?.[0]?.addresses ?? []);
  }

  /** Whether another project's references lead to it: requests from within the organization wake nothing. */
  #isReferenced({ metadata, spec }: Project): boolean {
    const { projects } = this.#deps.stores;
    return [metadata.name, spec.name].some(
      (text) => projects.byIndex(BY_REFERENCE, `${metadata.namespace}/${text}`).length > 0,
    );
  }

  /**
   * Starts the instances of a project that sleeps and whose spec is rejected: what ran before is to run.
   * @returns milliseconds until it is to be called again
   */
  async wakeRejected(
    project: Project,
    from: { rollout: Rollout; status: ProjectStatus; wakeMs: number },
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { client, clock, stores } = this.#deps;
    const { rollout, status, wakeMs } = from;
    const { sleep } = status;
    if (sleep === undefined || project.spec.paused) {
      status.sleep = undefined;
      this.#end(project, false);
      return undefined;
    }
    const deployment = childOf<LiveDeployment>(stores, resources.deployments, project);
    if (deployment !== undefined && deployment.spec?.replicas === 0) {
      const { name = "", namespace, uid } = deployment.metadata ?? {};
      const some = { metadata: { uid }, spec: { replicas: project.spec.instances ?? 1 } };
      const options = { fieldManager: fieldManagers.project, signal };
      const written = await client.patch(resources.deployments, { name, namespace }, some, options);
      stores.children.find(({ resource }) => resource === resources.deployments)?.store.observe(written);
    }
    const now = clock.now();
    const waking: Sleep =
      sleep.phase === "waking" ? sleep : { ...sleep, phase: "waking", since: now.toISOString() };
    const readyMs = this.#elapsed(this.#readyAt, project, rollout.serving > 0);
    const decided = decideSleep({ ...REJECTED, sleep: waking, readyMs, wakeMs, now });
    status.sleep = decided.sleep;
    if (decided.sleep === undefined) {
      this.#end(project, false);
    }
    return decided.againInMs;
  }

  /** Forgets a project. */
  forget(project: Project): void {
    this.#end(project, false);
    this.#awakeUntil.delete(project.metadata.uid ?? "");
    this.#keptUntil.delete(project.metadata.uid ?? "");
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

/** Checks what the settings require of the cluster: before anything is reconciled, and again as long as the operator leads. */

import {
  backoffDelay,
  isNotFound,
  type KubeClient,
  type KubernetesObject,
  type Manager,
  resources,
} from "@slipway/controller-runtime";
import { type Clock, ConfigError, type Logger, sleep } from "@slipway/process";
import { Gauge } from "prom-client";
import type { AllowList } from "./applications/access.ts";
import type { Config } from "./config.ts";
import { middlewareResource } from "./resources.ts";

type IngressClass = KubernetesObject & { spec?: { controller?: string } };

/** What an IngressClass names as its controller where that one reads access lists as they are written for it. */
const CONTROLLERS: Readonly<Record<Exclude<AllowList, "none">, RegExp>> = {
  traefik: /^traefik\.io\//,
  nginx: /ingress-nginx/,
};

/** Retry interval while the cluster does not answer, and the interval of later checks, in milliseconds. */
const RETRY = { baseMs: 1_000, maxMs: 30_000 };
const CHECK_INTERVAL_MS = 300_000;

/** Whether access lists are enforced, as far as it is known now. */
export type ClusterCheckResult =
  | { is: "compatible" }
  /** They are not, or the operator could never come up. `why` names what to install or to set. */
  | { is: "incompatible"; why: string }
  | { is: "unknown"; why: string };

type Settings = Pick<Config, "ingress">;

/** Checks once. */
export async function inspectCluster(client: KubeClient, { ingress }: Settings): Promise<ClusterCheckResult> {
  const { allowList, className } = ingress;
  if (allowList === "none") {
    return { is: "compatible" };
  }
  try {
    const found = await client.getOrUndefined<IngressClass>(resources.ingressClasses, { name: className });
    const controller = found?.spec?.controller;
    if (controller !== undefined && !CONTROLLERS[allowList].test(controller)) {
      const why =
        `SLIPWAY_INGRESS_ALLOW_LIST is ${allowList}, and the controller of the ingress class ${className} is ` +
        `${controller}, which would admit everybody. Set it (the chart's ingress.allowList) to traefik, nginx or none.`;
      return { is: "incompatible", why };
    }
    if (allowList === "traefik") {
      await client.list(middlewareResource, { limit: 1 });
    }
    const why = `There is no ingress class ${className}, or it names no controller.`;
    return controller === undefined ? { is: "unknown", why } : { is: "compatible" };
  } catch (error) {
    if (isNotFound(error)) {
      const { plural, group, version } = middlewareResource;
      const why =
        `SLIPWAY_INGRESS_ALLOW_LIST is traefik, and the cluster does not serve ${plural}.${group}/${version}. ` +
        "Install Traefik's custom resource definitions, or set it (the chart's ingress.allowList) to nginx or none.";
      return { is: "incompatible", why };
    }
    return { is: "unknown", why: `The cluster does not answer: ${(error as Error).message}` };
  }
}

export interface ClusterCheckDependencies {
  inspect: () => Promise<ClusterCheckResult>;
  clock: Clock;
  log: Logger;
}

/**
 * Waits until the cluster is known to be compatible; returns early when the signal aborts.
 * @throws ConfigError when it does not fit
 */
export async function checkCluster(
  { inspect, clock, log }: ClusterCheckDependencies,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    const result = await inspect();
    if (result.is === "compatible") {
      return;
    }
    if (result.is === "incompatible") {
      throw new ConfigError(result.why);
    }
    log.warn({ reason: result.why }, "whether access lists are enforced is not known yet; waiting");
    await sleep(clock, backoffDelay(attempt, RETRY), signal);
  }
}

/** Checks again every five minutes until the signal aborts, and reports what has become incompatible. */
export async function watchCluster(
  { inspect, clock, log }: ClusterCheckDependencies,
  report: (isIncompatible: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await sleep(clock, CHECK_INTERVAL_MS, signal);
    const result: ClusterCheckResult = signal.aborted ? { is: "compatible" } : await inspect();
    if (result.is === "incompatible") {
      log.error({ reason: result.why }, "access lists are not enforced any more");
    } else if (result.is === "unknown") {
      log.warn({ reason: result.why }, "whether access lists are still enforced is not known");
    }
    if (result.is !== "unknown") {
      report(result.is === "incompatible");
    }
  }
}

/** Adds both to a manager: the wait before anything is reconciled, and the check every five minutes on the leader. */
export function addClusterCheck(manager: Manager, config: Settings): void {
  const { client, clock, log, registry } = manager;
  const deps = { inspect: () => inspectCluster(client, config), clock, log };
  const isIncompatible = new Gauge({
    name: "slipway_access_lists_unenforced",
    help: "1 while the ingress controller is not the one that SLIPWAY_INGRESS_ALLOW_LIST names: it may admit everybody.",
    registers: [registry],
  });
  manager.addStartupCheck("cluster", (signal) => checkCluster(deps, signal));
  manager.addRunnable({
    name: "cluster",
    run: (signal) => watchCluster(deps, (is) => isIncompatible.set(is ? 1 : 0), signal),
  });
}

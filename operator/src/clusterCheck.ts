/** What the settings ask of the cluster, looked at once before the operator starts. */

import { isNotFound, type KubeClient, type KubernetesObject, resources } from "@slipway/kube";
import { type Config, ConfigError } from "./config.ts";
import type { AllowList } from "./project/http/access.ts";
import { middlewareResource } from "./resources.ts";
import type { Logger } from "./runtime/index.ts";

type IngressClass = KubernetesObject & { spec?: { controller?: string } };

/** What an IngressClass names as its controller where that one reads access lists as they are written for it. */
const CONTROLLERS: Readonly<Record<AllowList, RegExp>> = {
  traefik: /^traefik\.io\//,
  nginx: /ingress-nginx/,
  none: /^/,
};

/**
 * Stops a start in which access lists would not be enforced, or which could never come up: a kind that is not served
 * never fills its store. A cluster that does not answer is another matter, which the stores themselves wait for.
 * @throws ConfigError saying what to install or to set
 */
export async function checkCluster(
  client: KubeClient,
  { ingress }: Pick<Config, "ingress">,
  log: Logger,
): Promise<void> {
  const { allowList, className } = ingress;
  try {
    const found = await client.getOrUndefined<IngressClass>(resources.ingressClasses, { name: className });
    const controller = found?.spec?.controller;
    if (controller !== undefined && !CONTROLLERS[allowList].test(controller)) {
      throw new ConfigError(
        `SLIPWAY_INGRESS_ALLOW_LIST is ${allowList}, and the controller of the ingress class ${className} is ` +
          `${controller}, which would admit everybody. Set it (the chart's ingress.allowList) to traefik, nginx or none.`,
      );
    }
    if (allowList === "traefik") {
      await client.list(middlewareResource, { limit: 1 });
    }
  } catch (error) {
    if (error instanceof ConfigError) {
      throw error;
    }
    if (isNotFound(error)) {
      const { plural, group, version } = middlewareResource;
      throw new ConfigError(
        `SLIPWAY_INGRESS_ALLOW_LIST is traefik, and the cluster does not serve ${plural}.${group}/${version}. ` +
          "Install Traefik's custom resource definitions, or set it (the chart's ingress.allowList) to nginx or none.",
      );
    }
    log.warn({ err: error }, "cannot tell yet whether access lists can be enforced");
  }
}

/** What the settings ask of the cluster, looked at once before the operator starts. */

import { isNotFound, type KubeClient } from "@slipway/kube";
import { type Config, ConfigError } from "./config.ts";
import { middlewareResource } from "./resources.ts";
import type { Logger } from "./runtime/index.ts";

/**
 * Stops a start that could never come up: a kind that is not served never fills its store. A cluster that does not
 * answer is another matter, which the stores themselves wait for.
 * @throws ConfigError saying what to install or to set
 */
export async function checkCluster(
  client: KubeClient,
  { ingress }: Pick<Config, "ingress">,
  log: Logger,
): Promise<void> {
  if (ingress.allowList !== "traefik") {
    return;
  }
  try {
    await client.list(middlewareResource, { limit: 1 });
  } catch (error) {
    if (isNotFound(error)) {
      const { plural, group, version } = middlewareResource;
      throw new ConfigError(
        `SLIPWAY_INGRESS_ALLOW_LIST is traefik, and the cluster does not serve ${plural}.${group}/${version}. ` +
          "Install Traefik's custom resource definitions, or set it (the chart's ingress.allowList) to nginx or none.",
      );
    }
    log.warn({ err: error }, "cannot tell yet whether the cluster serves Middlewares");
  }
}

/** What the operator observes so that projects sleep: the activator's addresses, and requests at the ingress. */

import { isIP } from "node:net";
import { type Manager, resources, type Store } from "@slipway/controller-runtime";
import { ACTIVATOR, type Catalog, findHttpPlan, type Project, sleepsAfterSeconds } from "@slipway/crds";
import type { Service } from "../organizations/cluster-addresses.ts";
import { LastRequests } from "./last-requests.ts";
import type { SleepPlatform } from "./steps.ts";

export interface SleepOptions {
  /** The operator's own namespace, where the activator is. */
  namespace: string;
  /** Metrics of the ingress. */
  metricsUrl: string;
  projects: () => readonly Project[];
  catalog: () => Catalog;
}

/** The platform's part of sleep, and how to be called when the activator's addresses have changed. */
export interface Sleep {
  platform: SleepPlatform;
  onActivatorMoved: (listener: () => void) => () => void;
}

/** Adds it to a manager. */
export function addSleep(manager: Manager, options: SleepOptions): Sleep {
  const { namespace, metricsUrl, projects, catalog } = options;
  const services = manager.store<Service>(resources.services, {
    namespace,
    fieldSelector: `metadata.name=${ACTIVATOR}`,
  });
  const requests = new LastRequests({
    clock: manager.clock,
    log: manager.log,
    url: metricsUrl,
    isWanted: () =>
      projects().some(
        (project) => sleepsAfterSeconds(project, findHttpPlan(catalog(), project.spec.plan)) !== undefined,
      ),
  });
  manager.addRunnable({ name: "last-requests", leaderOnly: true, run: (signal) => requests.run(signal) });
  return {
    platform: {
      activator: () => addressesOf(services),
      namespace,
      idleSeconds: (names) => requests.idleSeconds(names),
    },
    onActivatorMoved: (listener) => {
      let known = addressesOf(services).join();
      return services.subscribe(() => {
        const now = addressesOf(services).join();
        if (now !== known) {
          known = now;
          listener();
        }
      });
    },
  };
}

/** Of one family, as an EndpointSlice has them. */
function addressesOf(services: Store<Service>): readonly string[] {
  const [address] = services.list().flatMap(({ spec }) => spec?.clusterIPs ?? []);
  return address !== undefined && isIP(address) > 0 ? [address] : [];
}

/** What the operator observes so that projects sleep: the activator's addresses, and requests that collectors have counted. */

import { isIP } from "node:net";
import { type Manager, resources, type Store } from "@slipway/controller-runtime";
import {
  ACTIVATOR,
  type Catalog,
  findHttpPlan,
  organizationOfNamespace,
  type Project,
  sleepsAfterSeconds,
} from "@slipway/crds";
import type { RoundObserver } from "../applications/requests/request-scaling.ts";
import type { Service } from "../organizations/cluster-addresses.ts";
import { LastRequests } from "./last-requests.ts";
import type { SleepPlatform } from "./steps.ts";

export interface SleepOptions {
  /** The operator's own namespace, where the activator is. */
  namespace: string;
  projects: () => readonly Project[];
  catalog: () => Catalog;
}

/** The platform's part of sleep, and how to be called when the activator's addresses have changed. */
export interface Sleep {
  platform: SleepPlatform;
  /** Receives the counts of requests. */
  requests: RoundObserver;
  onActivatorMoved: (listener: () => void) => () => void;
}

/** Adds it to a manager. */
export function addSleep(manager: Manager, options: SleepOptions): Sleep {
  const { namespace, projects, catalog } = options;
  const services = manager.store<Service>(resources.services, {
    namespace,
    fieldSelector: `metadata.name=${ACTIVATOR}`,
  });
  const requests = new LastRequests();
  return {
    platform: {
      activator: () => addressesOf(services),
      namespace,
      idleSeconds: ({ metadata: { namespace = "", name } }) =>
        requests.idleSeconds(
          `${organizationOfNamespace(namespace) ?? ""}/${name}`,
          manager.clock.monotonic(),
        ),
    },
    requests: {
      isWanted: () =>
        projects().some(
          (project) =>
            manager.owns(project.metadata.namespace) &&
            sleepsAfterSeconds(project, findHttpPlan(catalog(), project.spec.plan)) !== undefined,
        ),
      add: (round) => requests.add(round),
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

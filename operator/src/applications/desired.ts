/** Every child of an HTTP project or a worker, as a pure function of it. */

import type { DesiredObject } from "../desired.ts";
import { customIngresses, ingress } from "../domains/desired/ingress.ts";
import { activatorEndpoints, activatorService } from "../sleep/desired.ts";
import { persistentVolumeClaim } from "../workload/pvc.ts";
import { middleware } from "./access-list.ts";
import type { HttpApp, RoutedApp } from "./app.ts";
import { deployment } from "./desired/deployment.ts";
import { horizontalPodAutoscaler } from "./desired/hpa.ts";
import { networkPolicy } from "./desired/network-policy.ts";
import { podDisruptionBudget } from "./desired/pdb.ts";
import { service } from "./desired/service.ts";

/** The children in the order in which they are applied: dependencies first, the public route last. */
export function desired(app: HttpApp): DesiredObject[] {
  return [
    persistentVolumeClaim(app),
    networkPolicy(app),
    service(app),
    activatorService(app),
    activatorEndpoints(app),
    ...(app.awaitsPreDeploy ? [] : [deployment(app), podDisruptionBudget(app), horizontalPodAutoscaler(app)]),
    ...routes(app),
  ].filter((object) => object !== undefined);
}

/** The public route alone, in the order in which it is applied. */
export function routes(app: RoutedApp): DesiredObject[] {
  // The Middleware before the Ingress that names it.
  return [middleware(app), ingress(app), ...customIngresses(app)].filter((object) => object !== undefined);
}

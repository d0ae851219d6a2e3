import type { DesiredObject } from "../../desired.ts";
import { childMetadata } from "../../workload/app.ts";
import { type HttpApp, instanceSelector } from "../app.ts";

/** Keeps a drained node from stopping all instances at the same time; for one instance it would only block the drain. */
export function podDisruptionBudget(app: HttpApp): DesiredObject | undefined {
  if (app.replicas === 0 || (app.autoscaling?.min ?? app.replicas) < 2) {
    return undefined;
  }
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: childMetadata(app),
    spec: {
      maxUnavailable: 1,
      selector: instanceSelector(app),
    },
  };
}

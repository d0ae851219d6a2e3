/** What is deleted with an HTTP project, in this order. */

import { resources } from "@slipway/controller-runtime";
import type { DeletionStep } from "../projects/deletion.ts";
import { middlewareResource } from "../resources.ts";

/** After it the hostnames may be released. */
export const routeStep: DeletionStep = {
  delete: [resources.ingresses],
  pending: [resources.ingresses],
  waiting: { reason: "DeletingChildren", message: "The public route is being removed." },
};

export const instancesStep: DeletionStep = {
  delete: [resources.horizontalPodAutoscalers, resources.podDisruptionBudgets, resources.deployments],
  pending: [resources.deployments, resources.replicaSets, resources.pods],
  waiting: { reason: "DeletingChildren", message: "Instances are being stopped." },
};

export const remainsStep: DeletionStep = {
  delete: [
    resources.services,
    resources.endpointSlices,
    resources.networkPolicies,
    middlewareResource,
    resources.persistentVolumeClaims,
    resources.secrets,
  ],
  pending: [resources.persistentVolumeClaims],
  waiting: { reason: "DeletingChildren", message: "The volume is being removed." },
};

/** Deletes a database from the cluster: first its addresses, then what runs, then its data. */

import { resources } from "@slipway/controller-runtime";
import type { DeletionStep } from "../projects/deletion.ts";

export const deletionSteps: readonly DeletionStep[] = [
  {
    delete: [resources.services],
    awaited: [resources.services],
    waiting: { reason: "DeletingChildren", message: "The addresses are being removed." },
  },
  {
    delete: [resources.podDisruptionBudgets, resources.statefulSets],
    awaited: [resources.statefulSets, resources.pods],
    waiting: { reason: "DeletingChildren", message: "Instances are being stopped." },
  },
  {
    delete: [
      resources.networkPolicies,
      resources.roleBindings,
      resources.roles,
      resources.serviceAccounts,
      resources.configMaps,
      resources.persistentVolumeClaims,
      resources.secrets,
    ],
    awaited: [resources.persistentVolumeClaims],
    waiting: { reason: "DeletingChildren", message: "The volumes are being removed." },
  },
];

/** The controller of deleted projects: what it needs, what wakes it, what it may do. */

import {
  ignoreStatusUpdates,
  type Manager,
  type Store,
  tracedIn,
  watchObjects,
} from "@slipway/controller-runtime";
import type { DeletedProject } from "@slipway/crds";
import type { PolicyRule } from "../rbac.ts";
import { deletedProjectResource } from "../resources.ts";
import { deletedProjectReconciler } from "./reconciler.ts";

/** In every namespace: records, and volumes, which are in none. A policy of the chart confines it to volumes of organizations' claims. */
export const rules: PolicyRule[] = [
  {
    apiGroups: ["slipway.dev"],
    resources: ["deletedprojects"],
    verbs: ["get", "list", "watch", "patch", "delete"],
  },
  { apiGroups: ["slipway.dev"], resources: ["deletedprojects/status"], verbs: ["update"] },
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["get", "patch"] },
  { apiGroups: ["slipway.dev"], resources: ["projects/status"], verbs: ["patch"] },
  { apiGroups: [""], resources: ["persistentvolumes"], verbs: ["get", "patch"] },
];

/** In organizations' namespaces alone: what is kept, and what is created from it again. */
export const organizationRules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["deletedprojects", "projects"], verbs: ["create"] },
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "create", "patch", "delete"] },
  {
    apiGroups: [""],
    resources: ["configmaps", "persistentvolumeclaims", "services"],
    verbs: ["get", "create"],
  },
];

export function addUndelete(manager: Manager, { namespaces }: { namespaces: Store }): void {
  const { client, trustedClock: clock, recorder } = manager;
  const records = manager.store<DeletedProject>(deletedProjectResource);
  manager.addController({
    name: "deletedproject",
    reconcile: deletedProjectReconciler({ client, clock, recorder, records, namespaces }),
    sources: [watchObjects(records, ignoreStatusUpdates)],
    workers: 2,
    traced: tracedIn(records),
  });
}

/**
 * Organizations: a provisioned namespace for every organization of the ledger. This file has the watches; the ledger is polled
 * by `source.ts`. `reconciler.ts` applies the namespace and its policies (`desired/`), and waits until its quota is counted.
 * `egress-check.ts` compares the denied ranges with the cluster's own addresses (`cluster-addresses.ts`).
 */

import {
  byLabel,
  type ChildKind,
  type Controller,
  customSource,
  type Manager,
  type Resource,
  resources,
  type Store,
  type WatchedNamespaces,
  watchMapped,
} from "@slipway/controller-runtime";
import { LOG_DRAINS_ROLE, labels, PLATFORM_BACKUP_ROLE } from "@slipway/crds";
import type { PolicyRule } from "../rbac.ts";
import { PROVISIONED_ANNOTATION } from "./desired/namespace.ts";
import { ADMIN_ROLE, API_SERVER_ROLE, OPERATOR_ROLE } from "./desired/namespace-policies.ts";
import { type OrganizationOptions, OrganizationReconciler } from "./reconciler.ts";
import { OrganizationSource } from "./source.ts";

/** Policies of a namespace other than the role bindings: written once those are in effect. */
const POLICIES: readonly (readonly [group: string, resources: readonly string[]])[] = [
  ["", ["limitranges", "resourcequotas"]],
  ["networking.k8s.io", ["networkpolicies"]],
];

/**
 * In every namespace. It deletes no namespace. The chart's ValidatingAdmissionPolicy `slipway-operator` restricts which
 * namespaces and bindings it may write, and how: a namespace needs them before any right is granted in it.
 */
export const rules: PolicyRule[] = [
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch", "create", "patch"] },
  ...POLICIES.map(([group, resources]) => ({ apiGroups: [group], resources, verbs: ["list", "watch"] })),
  {
    apiGroups: ["rbac.authorization.k8s.io"],
    resources: ["rolebindings"],
    verbs: ["get", "list", "watch", "create", "patch", "delete"],
  },
  // It may bind these roles, without having them.
  {
    apiGroups: ["rbac.authorization.k8s.io"],
    resources: ["clusterroles"],
    resourceNames: [API_SERVER_ROLE, ADMIN_ROLE, OPERATOR_ROLE],
    verbs: ["bind"],
  },
];

/** In addition where log drains are delivered. */
export const logDrainRules: PolicyRule[] = [
  {
    apiGroups: ["rbac.authorization.k8s.io"],
    resources: ["clusterroles"],
    resourceNames: [LOG_DRAINS_ROLE],
    verbs: ["bind"],
  },
];

/** In addition where the platform is backed up on a schedule. */
export const platformBackupRules: PolicyRule[] = [
  {
    apiGroups: ["rbac.authorization.k8s.io"],
    resources: ["clusterroles"],
    resourceNames: [PLATFORM_BACKUP_ROLE],
    verbs: ["bind"],
  },
];

/** In organizations' namespaces alone. */
export const organizationRules: PolicyRule[] = POLICIES.map(([group, resources]) => ({
  apiGroups: [group],
  resources,
  verbs: ["get", "create", "patch", "delete"],
}));

const POLICY_KINDS: readonly Resource[] = [
  resources.networkPolicies,
  resources.limitRanges,
  resources.resourceQuotas,
  resources.roleBindings,
];

/** The store of organizations' namespaces, which the project controller reads too. */
export function createNamespaceStore(manager: Manager): Store {
  return manager.store(resources.namespaces, {
    indexers: { [labels.organization]: byLabel(labels.organization) },
    labelSelector: `${labels.role}=organization`,
  });
}

/** Namespaces in which the processes have been granted their rights, for stores of kinds that are read there alone. */
export function provisionedNamespaces(store: Store): WatchedNamespaces {
  return { store, includes: ({ metadata }) => metadata?.annotations?.[PROVISIONED_ANNOTATION] !== undefined };
}

/** Adds the controller, and the poll of the ledger that feeds it, to a manager. */
export function addOrganizationController(
  manager: Manager,
  namespaces: Store,
  options: OrganizationOptions,
): Controller {
  const kinds = [{ resource: resources.namespaces, store: namespaces }, ...createPolicyStores(manager)];
  let added: ((id: string) => void) | undefined;
  const source = new OrganizationSource({
    list: options.list,
    onAdded: (id) => added?.(id),
    logger: manager.log,
    pollMs: options.pollMs,
  });
  manager.addRunnable({ name: "organizations", run: (signal) => source.run(signal) });
  const reconciler = new OrganizationReconciler(manager, namespaces, kinds, source, options);
  return manager.addController({
    name: "organization",
    reconcile: (ref, context) => reconciler.reconcile(ref, context),
    sources: [
      customSource((enqueue) => {
        added = enqueue;
        return () => {
          added = undefined;
        };
      }),
      customSource((enqueue) => {
        const all = () => {
          for (const { metadata } of namespaces.list()) {
            const id = metadata?.labels?.[labels.organization];
            if (id !== undefined) {
              enqueue(id);
            }
          }
        };
        return options.onLimitsChange?.(all) ?? (() => {});
      }),
      ...kinds.map(({ store }) =>
        watchMapped(store, (object) => {
          const id = object.metadata?.labels?.[labels.organization];
          return id === undefined ? [] : [{ name: id }];
        }),
      ),
    ],
    workers: 2,
  });
}

function createPolicyStores(manager: Manager): ChildKind[] {
  return POLICY_KINDS.map((resource) => ({
    resource,
    store: manager.store(resource, {
      indexers: { [labels.organization]: byLabel(labels.organization) },
      // Children of projects carry the organization's label too.
      labelSelector: `${labels.organization},!${labels.project}`,
    }),
  }));
}

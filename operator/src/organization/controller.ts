/** The organization controller: a guarded namespace for every organization of the ledger. */

import { fieldManagers, labels, type OrganizationLimits, organizationNamespace } from "@slipway/crds";
import { byLabel, type ObjectRef, type Resource, resources, type Store } from "@slipway/kube";
import type { PolicyRule } from "../rbac.ts";
import {
  Applier,
  type ChildKind,
  type Controller,
  customSource,
  type Manager,
  type ReconcileContext,
  watchMapped,
} from "../runtime/index.ts";
import { API_SERVER_ROLE, desiredGuards, type GuardSettings, OPERATOR_ROLE } from "./guards.ts";
import { desiredNamespace, GUARDED_ANNOTATION } from "./namespace.ts";
import { OrganizationSource } from "./source.ts";

/** Permissions of the controller; the chart's ClusterRole is generated from them. It deletes no namespace. */
export const rules: PolicyRule[] = [
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch", "create", "patch"] },
  {
    apiGroups: [""],
    resources: ["limitranges", "resourcequotas"],
    verbs: ["get", "list", "watch", "create", "patch", "delete"],
  },
  {
    apiGroups: ["networking.k8s.io"],
    resources: ["networkpolicies"],
    verbs: ["get", "list", "watch", "create", "patch", "delete"],
  },
  {
    apiGroups: ["rbac.authorization.k8s.io"],
    resources: ["rolebindings"],
    verbs: ["get", "list", "watch", "create", "patch", "delete"],
  },
  // It may hand out these two roles, without having them.
  {
    apiGroups: ["rbac.authorization.k8s.io"],
    resources: ["clusterroles"],
    resourceNames: [API_SERVER_ROLE, OPERATOR_ROLE],
    verbs: ["bind"],
  },
];

const GUARDS: readonly Resource[] = [
  resources.networkPolicies,
  resources.limitRanges,
  resources.resourceQuotas,
  resources.roleBindings,
];

export interface OrganizationOptions extends Omit<GuardSettings, "limits"> {
  /** Ceilings of one organization, as the catalog has them now. */
  limits: () => OrganizationLimits;
  /** Calls the listener when they may be others; returns what ends that. */
  onLimitsChange?: (listener: () => void) => () => void;
  /** Reads the ids of all organizations. */
  list: () => Promise<string[]>;
  pollMs?: number;
}

/** The store of organizations' namespaces, which the project controller reads too. */
export function createNamespaceStore(manager: Manager): Store {
  return manager.store(resources.namespaces, {
    indexers: { [labels.organization]: byLabel(labels.organization) },
    labelSelector: `${labels.role}=organization`,
  });
}

/** Adds the controller, and the poll of the ledger that feeds it, to a manager. */
export function addOrganizationController(
  manager: Manager,
  namespaces: Store,
  options: OrganizationOptions,
): Controller {
  const kinds = [{ resource: resources.namespaces, store: namespaces }, ...createGuardStores(manager)];
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
    reconcile: async (ref, context) => {
      await reconciler.reconcile(ref, context);
      return undefined;
    },
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
            if (id !== undefined) enqueue(id);
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

class OrganizationReconciler {
  readonly #namespaces: Store;
  readonly #source: OrganizationSource;
  readonly #settings: OrganizationOptions;
  readonly #applier: Applier;

  constructor(
    { client, metrics }: Manager,
    namespaces: Store,
    kinds: readonly ChildKind[],
    source: OrganizationSource,
    settings: OrganizationOptions,
  ) {
    this.#namespaces = namespaces;
    this.#source = source;
    this.#settings = settings;
    this.#applier = new Applier({ client, metrics, kinds, fieldManager: fieldManagers.organization });
  }

  async reconcile({ name: id }: ObjectRef, { log, signal }: ReconcileContext): Promise<void> {
    const namespace = organizationNamespace(id);
    const present = this.#namespaces.get(undefined, namespace);
    // A namespace that the ledger does not name stays guarded, but none is made for it.
    if (!present && !this.#source.has(id)) {
      return;
    }
    const owner = { label: { key: labels.organization, value: id }, namespace };
    const guards = desiredGuards(id, namespace, { ...this.#settings, limits: this.#settings.limits() });
    const guarded = present?.metadata?.annotations?.[GUARDED_ANNOTATION] !== undefined;
    // A tenant cannot make such a namespace, so one that lost its marks was ours.
    const context = { log, signal, adopt: true };
    const apply = (isGuarded: boolean) =>
      this.#applier.applyAndPrune(owner, [desiredNamespace(id, namespace, isGuarded), ...guards], context);
    await apply(guarded);
    if (!guarded) {
      await apply(true);
      log.info({ organization: id }, "namespace is guarded");
    }
  }
}

function createGuardStores(manager: Manager): ChildKind[] {
  return GUARDS.map((resource) => ({
    resource,
    store: manager.store(resource, {
      indexers: { [labels.organization]: byLabel(labels.organization) },
      // Children of projects carry the organization's label too.
      labelSelector: `${labels.organization},!${labels.project}`,
    }),
  }));
}

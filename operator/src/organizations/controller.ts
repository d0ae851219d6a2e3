/**
 * Organizations: a provisioned namespace for every organization of the ledger. This file has the watches; the ledger is polled
 * by `source.ts`. `reconciler.ts` applies the namespace and its policies (`desired/`), and waits until its quota is counted
 * (`quota.ts`). `egress-check.ts` compares the denied ranges (`cidrs.ts`) with the cluster's own (`cluster-addresses.ts`).
 */

import {
  Applier,
  byLabel,
  type ChildKind,
  type Controller,
  customSource,
  type KubeClient,
  type Manager,
  type ObjectRef,
  onceBound,
  type ReconcileContext,
  type Resource,
  type Result,
  resources,
  type Store,
  type WatchedNamespaces,
  watchMapped,
} from "@slipway/controller-runtime";
import { fieldManagers, GROUP, labels, type OrganizationLimits, organizationNamespace } from "@slipway/crds";
import type { PolicyRule } from "../rbac.ts";
import { desiredNamespace, PROVISIONED_ANNOTATION } from "./desired/namespace.ts";
import {
  ADMIN_ROLE,
  API_SERVER_ROLE,
  desiredNamespacePolicies,
  hardLimits,
  type NamespacePolicySettings,
  OPERATOR_ROLE,
  policyNames,
} from "./desired/namespace-policies.ts";
import { isCounted, type Quota, QuotaCounting, RECOUNT_MS } from "./quota.ts";
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

export interface OrganizationOptions extends Omit<NamespacePolicySettings, "limits"> {
  /** Ceilings of one organization, as the catalog has them now. */
  limits: () => OrganizationLimits;
  /** Calls the listener when they may have changed; returns how to unsubscribe. */
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

class OrganizationReconciler {
  readonly #namespaces: Store;
  readonly #quotas: Store<Quota> | undefined;
  readonly #source: OrganizationSource;
  readonly #settings: OrganizationOptions;
  readonly #applier: Applier;
  readonly #client: KubeClient;
  readonly #counting: QuotaCounting;

  constructor(
    { client, clock, metrics }: Manager,
    namespaces: Store,
    kinds: readonly ChildKind[],
    source: OrganizationSource,
    settings: OrganizationOptions,
  ) {
    this.#namespaces = namespaces;
    this.#quotas = kinds.find(({ resource }) => resource === resources.resourceQuotas)?.store;
    this.#source = source;
    this.#settings = settings;
    this.#client = client;
    this.#counting = new QuotaCounting(clock);
    this.#applier = new Applier({
      client,
      metrics,
      kinds,
      fieldManager: fieldManagers.organization,
      annotationPrefix: GROUP,
    });
  }

  async reconcile({ name: id }: ObjectRef, { log, signal }: ReconcileContext): Promise<Result | undefined> {
    const namespace = organizationNamespace(id);
    const present = this.#namespaces.get(undefined, namespace);
    // A namespace that the ledger does not name keeps its policies, but none is created for it.
    if (!present && !this.#source.has(id)) {
      return undefined;
    }
    const owner = { label: { key: labels.organization, value: id }, namespace };
    const settings = { ...this.#settings, limits: this.#settings.limits() };
    const policies = desiredNamespacePolicies(id, namespace, settings);
    const isProvisioned = present?.metadata?.annotations?.[PROVISIONED_ANNOTATION] !== undefined;
    // A tenant cannot create such a namespace, so one that lost its labels was the operator's.
    const context = { log, signal, adopt: true };
    const apply = (provisioned: boolean) =>
      // The bindings grant the rights to everything but the namespace and the bindings.
      onceBound(() =>
        this.#applier.applyAndPrune(
          owner,
          [desiredNamespace(id, namespace, provisioned), ...policies],
          context,
        ),
      );
    await apply(isProvisioned);
    if (!isProvisioned) {
      const quota = this.#quotas?.get(namespace, policyNames.quota);
      // A change of its status reconciles the organization again.
      if (!quota || !isCounted(hardLimits(settings), quota)) {
        log.info({ organization: id }, "the quota of a namespace is not counted yet");
        return quota && this.#recount(namespace, quota, { log, signal });
      }
      this.#counting.forget(namespace);
      await apply(true);
      log.info({ organization: id }, "namespace is provisioned");
    }
    return undefined;
  }

  /** Replaces a quota that the quota controller passed over, so that it is counted; nothing is created in the namespace meanwhile. */
  async #recount(
    namespace: string,
    { metadata }: Quota,
    { log, signal }: Pick<ReconcileContext, "log" | "signal">,
  ): Promise<Result> {
    const { name = "", uid = "" } = metadata ?? {};
    const leftMs = this.#counting.leftMs(namespace, uid);
    if (leftMs > 0) {
      return { requeueAfterMs: leftMs };
    }
    await this.#client.delete(resources.resourceQuotas, { namespace, name }, { uid, signal });
    log.info({ namespace }, "the quota of a namespace was not counted in time and is created again");
    // Its deletion reconciles the organization again.
    return { requeueAfterMs: RECOUNT_MS };
  }
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

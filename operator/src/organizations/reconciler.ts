/** Reconciles one organization: applies its namespace and policies, and marks the namespace once its quota is counted. */

import {
  Applier,
  type ChildKind,
  equalQuantities,
  type KubeClient,
  type KubernetesObject,
  type Manager,
  type ObjectRef,
  onceBound,
  type ReconcileContext,
  type Result,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { fieldManagers, GROUP, labels, type OrganizationLimits, organizationNamespace } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { desiredNamespace, PROVISIONED_ANNOTATION } from "./desired/namespace.ts";
import {
  desiredNamespacePolicies,
  hardLimits,
  type NamespacePolicySettings,
  policyNames,
} from "./desired/namespace-policies.ts";
import type { OrganizationSource } from "./source.ts";

export interface OrganizationOptions extends Omit<NamespacePolicySettings, "limits"> {
  /** Ceilings of one organization, as the catalog has them now. */
  limits: () => OrganizationLimits;
  /** Calls the listener when they may have changed; returns how to unsubscribe. */
  onLimitsChange?: (listener: () => void) => () => void;
  /** Reads the ids of all organizations. */
  list: () => Promise<string[]>;
  pollMs?: number;
}

export class OrganizationReconciler {
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

// Reads whether a namespace's quota is in effect.

/** The parts of a ResourceQuota that are read here. */
export interface Quota extends KubernetesObject {
  spec?: { hard?: Record<string, string> };
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}

/**
 * Whether everything that a quota is to bound has been counted. Until the quota controller of Kubernetes has taken its limits over, it
 * bounds nothing; until a kind is counted, its creations are refused. Pure.
 * @param hard the desired limits
 */
export function isCounted(hard: Record<string, string>, { status }: Quota): boolean {
  return Object.entries(hard).every(
    ([what, most]) => equalQuantities(status?.hard?.[what], most) && status?.used?.[what] !== undefined,
  );
}

/**
 * How long a quota may stay uncounted before it is created again, in milliseconds. The quota controller searches for new kinds every 30 s, and
 * a quota that it took over just before it knew a kind is counted with its next full synchronization only: five minutes by default.
 */
export const RECOUNT_MS = 35_000;

/** Since when quotas have been seen uncounted, by a clock that nobody sets. */
export class QuotaCounting {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #seen = new Map<string, { uid: string; at: number }>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Milliseconds until the uncounted quota of a namespace is to be created again. */
  leftMs(namespace: string, uid: string): number {
    const now = this.#clock.monotonic();
    const seen = this.#seen.get(namespace);
    if (seen?.uid === uid) {
      return Math.max(0, seen.at + RECOUNT_MS - now);
    }
    this.#seen.set(namespace, { uid, at: now });
    return RECOUNT_MS;
  }

  /** Its quota is counted. */
  forget(namespace: string): void {
    this.#seen.delete(namespace);
  }
}

import {
  Applier,
  byLabel,
  controllerReference,
  ensureFinalizer,
  type KubernetesObject,
  Manager,
  type ManagerOptions,
  type ObjectMeta,
  objectReconciler,
  type Resource,
  removeFinalizer,
  resources,
  TerminalError,
  watchObjects,
  watchOwned,
} from "@slipway/controller-runtime";
import { type Clock, systemClock } from "@slipway/process";
import { OWNER_LABEL, type Widget, widgets } from "./harness.ts";

/** The desired objects of a widget: every kind whose fields the apiserver defaults or rewrites. */
export type DesiredOf = (widget: Widget) => KubernetesObject[];

export interface WidgetOperatorOptions {
  cluster: ManagerOptions["cluster"];
  identity: string;
  desired: DesiredOf;
  children: readonly Resource[];
  /** Called first in each reconcile: throw here to break it. */
  before?: (widget: Widget, identity: string) => void | Promise<void>;
  leaderElection?: ManagerOptions["leaderElection"];
  exit?: (code: number) => void;
  /** What has to succeed before the operator acts. */
  startupCheck?: (signal: AbortSignal) => Promise<void>;
  clock?: Clock;
  log?: ManagerOptions["log"];
}

const FINALIZER = "test.dev/widget";

/** A whole operator for tests: finalizer, children, pruning, status, events, as a real one has them. */
export function widgetOperator(options: WidgetOperatorOptions & { log: ManagerOptions["log"] }): Manager {
  const { cluster, identity, leaderElection, exit, log } = options;
  const manager = new Manager({
    cluster,
    identity,
    log,
    name: "test.dev/operator",
    port: 0,
    host: "127.0.0.1",
    leaderElection,
    exit,
    clock: options.clock ?? systemClock,
    gracePeriodMs: 2_000,
  });
  if (options.startupCheck) {
    manager.addStartupCheck("test", options.startupCheck);
  }
  const store = manager.store<Widget>(widgets);
  const kinds = options.children.map((resource) => ({
    resource,
    rarelyChanges: true,
    store: manager.store(resource, {
      labelSelector: OWNER_LABEL,
      indexers: { [OWNER_LABEL]: byLabel(OWNER_LABEL) },
    }),
  }));
  const applier = new Applier({
    client: manager.client,
    fieldManager: "test-widget",
    annotationPrefix: "test.dev",
    kinds,
    metrics: manager.metrics,
  });
  const { client } = manager;
  manager.addController({
    name: "widget",
    sources: [watchObjects(store), ...kinds.map((kind) => watchOwned(kind.store, widgets))],
    backoff: { baseMs: 5, maxMs: 1_000 },
    reconcile: objectReconciler<Widget>({
      client,
      resource: widgets,
      store,
      recorder: manager.recorder,
      clock: manager.clock,
      fieldManager: "test-widget",
      async reconcile(widget, context) {
        await options.before?.(widget, identity);
        const { name, namespace } = widget.metadata;
        const owner = {
          label: { key: OWNER_LABEL, value: name },
          namespace,
          reference: controllerReference(widget, widgets),
        };
        if (widget.metadata.deletionTimestamp) {
          const remaining = await applier.removeAll(owner, context);
          if (remaining.length > 0) {
            return { requeueAfterMs: 100 };
          }
          await removeFinalizer(widget, FINALIZER, { client, resource: widgets, store });
          return undefined;
        }
        await ensureFinalizer(widget, FINALIZER, {
          client,
          resource: widgets,
          store,
          signal: context.signal,
        });
        if (widget.spec?.broken) {
          throw new TerminalError("Broken", widget.spec.broken);
        }
        await applier.applyAndPrune(owner, options.desired(widget), context);
        context.status.size = widget.spec?.size;
        return undefined;
      },
    }),
  });
  return manager;
}

/** The CustomResourceDefinition of widgets, for a real apiserver. */
export const widgetDefinition: KubernetesObject & { metadata: ObjectMeta; spec: object } = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.test.dev" },
  spec: {
    group: "test.dev",
    scope: "Namespaced",
    names: { kind: "Widget", plural: "widgets", singular: "widget" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: { type: "object", properties: { size: { type: "integer" }, broken: { type: "string" } } },
              status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
            },
          },
        },
      },
    ],
  },
};

export const childResources = [
  resources.configMaps,
  resources.secrets,
  resources.services,
  resources.persistentVolumeClaims,
  resources.deployments,
  resources.statefulSets,
  resources.cronJobs,
  resources.ingresses,
  resources.networkPolicies,
  resources.podDisruptionBudgets,
  resources.horizontalPodAutoscalers,
  resources.resourceQuotas,
  resources.limitRanges,
  resources.serviceAccounts,
] as const;

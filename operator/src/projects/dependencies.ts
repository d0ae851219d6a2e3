import {
  Applier,
  type EventRecorder,
  type KubeClient,
  type ObjectRef,
  type RuntimeMetrics,
} from "@slipway/controller-runtime";
import { type Catalog, fieldManagers, GROUP, type Project } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { ChangeRecorder } from "../billing/change-recorder.ts";
import type { RegistryLogin } from "../registry/ecr.ts";
import { Retention } from "../undelete/retention.ts";
import type { DeploymentRecords } from "./deployments/records.ts";
import type { DeploymentSteps } from "./deployments/steps.ts";
import type { BuiltPull } from "./images/built-pull.ts";
import { type KindDependencies, type ProjectKind, type ProjectKinds, unsupportedKind } from "./kind.ts";
import type { QuotaReservations } from "./quotas/reservations.ts";
import type { ProjectStores } from "./stores.ts";

export interface ProjectDependencies {
  client: KubeClient;
  clock: Clock;
  recorder: EventRecorder;
  metrics: RuntimeMetrics;
  stores: ProjectStores;
  catalog: () => Catalog;
  /** The types of projects that are reconciled. */
  kinds: (shared: KindDependencies) => ProjectKinds;
  /** Has a project reconciled soon. */
  wake: (project: ObjectRef) => void;
  registryLogin: RegistryLogin;
  /** Keeps what nodes pull built images with; undefined where nothing is built. */
  builtPull?: Pick<BuiltPull, "ensure" | "host">;
  /** How many projects of an organization are rolled at a time because variables that they share have changed. */
  variableRollouts: number;
  quotas: QuotaReservations;
  deploymentRecords: DeploymentRecords;
  /** Records changes of what is billed; undefined where plans are not metered. */
  billableChanges?: Pick<ChangeRecorder, "isOn" | "report" | "reportDeletion" | "hasEnded"> | undefined;
}

/** Finds the kind of a project; its type may be one that nothing here reconciles. */
export function kindsOf(deps: ProjectDependencies, deployments: DeploymentSteps) {
  const applier = new Applier({
    client: deps.client,
    fieldManager: fieldManagers.project,
    annotationPrefix: GROUP,
    kinds: deps.stores.children,
    metrics: deps.metrics,
  });
  const { client, clock, stores, catalog, wake } = deps;
  const retention = new Retention({ client, clock, catalog, stores });
  const kinds = deps.kinds({ client, clock, stores, catalog, applier, deployments, retention, wake });
  const unsupported = unsupportedKind(client);
  return ({ spec }: Project): ProjectKind => kinds[spec.type] ?? unsupported;
}

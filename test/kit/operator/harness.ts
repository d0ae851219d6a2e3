/** A real kube-apiserver with Slipway's kinds, and an operator on it, for integration tests. */

import { readFile } from "node:fs/promises";
import type { KubeConfig } from "@kubernetes/client-node";
import {
  type BackoffOptions,
  KubeClient,
  type KubernetesObject,
  type ManagerOptions,
  type ObjectRef,
  type Resource,
  resources,
} from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { type Catalog, type Project, parseCatalog } from "@slipway/crds";
import type { QuotaReservation } from "@slipway/ledger";
import { type Clock, silentLogger } from "@slipway/process";
import { startApiserver, type TestApiserver } from "../../../hack/cluster/apiserver.ts";
import { readVerbs } from "../../../hack/cluster/control-plane.ts";
import { waitFor } from "../../../hack/lib/wait.ts";
import type { AllowList } from "../../../operator/src/applications/access.ts";
import type { BillingLedger } from "../../../operator/src/billing/billing.ts";
import type { MeteringLedger } from "../../../operator/src/billing/metering.ts";
import type { BudgetLedger } from "../../../operator/src/budgets/ports.ts";
import type { Config } from "../../../operator/src/config.ts";
import type { DatabaseImages } from "../../../operator/src/databases/settings.ts";
import type { IngressProbe } from "../../../operator/src/domains/ingress-probe.ts";
import type { ReservationLedger } from "../../../operator/src/domains/reservations.ts";
import type { CloseMetering } from "../../../operator/src/jobs/deletion.ts";
import type { RunLedger } from "../../../operator/src/jobs/runs/ports.ts";
import type { StoreRunLog } from "../../../operator/src/logs/run-logs.ts";
import { createOperator } from "../../../operator/src/operator.ts";
import type { RecordDeployment } from "../../../operator/src/projects/deployments/records.ts";
import type { QuotaLedger } from "../../../operator/src/projects/quotas/quota-ledger.ts";
import type { RegistryLogin } from "../../../operator/src/registry/ecr.ts";
import { projectResource } from "../../../operator/src/resources.ts";
import type { SleepPlatform } from "../../../operator/src/sleep/steps.ts";
import { applyCrds } from "../clusters/definitions.ts";
import { countQuotas } from "../clusters/quotas.ts";
import { acquireApiserver } from "../clusters/shared-apiserver.ts";

const repository = new URL("../../../", import.meta.url);

/** A cluster without controllers: no Deployment ever makes a pod, so tests write its status themselves. */
export interface TestCluster {
  api: TestApiserver;
  client: KubeClient;
  /** Requests of operators that may write, from the apiserver's audit log. */
  operatorWrites(): Promise<string[]>;
  stop(): Promise<void>;
}

/**
 * An apiserver with the custom resources.
 * @param isShared whether other files of this worker use it afterwards; one of its own lacks Traefik's definitions, and a test
 * may change those that it has
 * @param countsQuotas whether limits of quotas are taken over: without it no namespace is called guarded
 */
export async function startCluster({ isShared = true, countsQuotas = true } = {}): Promise<TestCluster> {
  const api = isShared ? await acquireApiserver() : await startApiserver();
  const client = KubeClient.fromConfig(loadKubeConfig({ file: api.kubeconfig }), { userAgent: "test" });
  if (!isShared) {
    await applyCrds(client);
  }
  const stopCounting = countsQuotas ? countQuotas(client) : undefined;
  return {
    api,
    client,
    operatorWrites: async () =>
      (await readFile(api.auditLog, "utf8"))
        .split("\n")
        // The last one is not written to its end yet, or empty.
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { userAgent?: string; verb: string; requestURI: string })
        .filter(({ userAgent, verb }) => userAgent === "slipway.dev/operator" && !readVerbs.includes(verb))
        .map(({ verb, requestURI }) => `${verb} ${requestURI}`),
    stop: async () => {
      await stopCounting?.();
      await client.close();
      await api.stop();
    },
  };
}

export interface TestOperator {
  catalog: Catalog;
  /** Notifies the operator that the catalog changed. */
  catalogChanged(): void;
  stop(): Promise<void>;
}

/** One with a promise of its end. */
export interface TestProcess extends TestOperator {
  metrics(): Promise<string>;
  /** What it failed with, once it has ended. */
  ended: Promise<unknown>;
}

/** Runs an operator in this process, without leader election and without a port. */
export async function startOperator(
  { api }: TestCluster,
  options: {
    listOrganizations: () => Promise<string[]>;
    /** As whom it acts: as the cluster's administrator unless given. */
    kubeConfig?: KubeConfig;
    ingressProbe?: IngressProbe;
    /** How projects sleep: none does unless given. */
    sleep?: SleepPlatform;
    /** Unlimited unless given. */
    quotas?: QuotaLedger;
    /** None unless given: no database is carried out. */
    databaseImages?: DatabaseImages;
    /** Milliseconds that each instance has to serve on another plan: ten minutes unless given. */
    planChangeMs?: number;
    egressDeniedCidrs?: string[];
    allowList?: AllowList;
    rolloutDeadlineSeconds?: number;
    /** Projects that are rolled at a time because of changed variables: 5 unless given. */
    variableRollouts?: number;
    /** Version of what the pods' templates of new deployments are made from: the first unless given. */
    podTemplateVersion?: number;
    reservedHostnames?: string[];
    certificateIssuer?: string;
    /** Which servers are queried about the owners of custom domains: none answers unless given. */
    dnsServers?: string[];
    ownershipRetry?: BackoffOptions;
    proofRetry?: BackoffOptions;
    /** Milliseconds between two reads of a certificate. */
    certificatePeriodsMs?: { pending_issuance: number; active: number };
    reservations?: ReservationLedger;
    clock?: Clock;
    recordDeployment?: RecordDeployment;
    /** The ledger's time: with it the operator's clock is compared with that and with the apiserver's. */
    ledgerTime?: () => Promise<Date>;
    /** There is no election unless given. */
    leaderElection?: ManagerOptions["leaderElection"];
    identity?: string;
    /** Where storage is charged: nobody reads it unless given. */
    billing?: BillingLedger;
    /** Where plans are metered: they are not unless given. */
    metering?: MeteringLedger;
    /** False: they are not metered any more. */
    metersPlans?: boolean;
    /** Where budgets are: none is compared unless given. */
    budgets?: { ledger: BudgetLedger; periodMs: number };
    /** Where the ends of runs' logs go: nowhere unless given. */
    storeRunLog?: StoreRunLog;
    /** Where runs are charged: everything is taken, and forgotten, unless given. */
    runs?: RunLedger;
    closeMetering?: CloseMetering;
    ingressNamespace?: string;
    /** Where requests are counted: no project is scaled by them unless given. */
    requestScaling?: Config["requestScaling"];
    /** How Amazon's registry is logged in to: for real unless given. */
    registryLogin?: RegistryLogin;
  },
): Promise<TestProcess> {
  const text = await readFile(new URL("charts/slipway/files/catalog.yaml", repository), "utf8");
  const catalog = { ...parseCatalog(text) };
  const listeners = new Set<() => void>();
  const manager = createOperator({
    config: {
      domainZone: "apps.test",
      reservedHostnames: options.reservedHostnames ?? [],
      dnsServers: options.dnsServers ?? ["127.0.0.1:9"],
      namespace: "slipway-system",
      shard: { index: 0, count: 1 },
      webhooks: { allowedHosts: [] },
      ingress: {
        className: "traefik",
        namespace: options.ingressNamespace ?? "slipway-ingress",
        annotations: {},
        allowList: options.allowList ?? "traefik",
        certificateIssuer: options.certificateIssuer,
      },
      dnsNamespace: "kube-system",
      egressDeniedCidrs: options.egressDeniedCidrs ?? ["10.0.0.0/8"],
      rolloutDeadlineSeconds: options.rolloutDeadlineSeconds ?? 300,
      variableRollouts: options.variableRollouts ?? 5,
      podTemplateVersion: options.podTemplateVersion ?? 1,
      kubelet: { verify: true },
      requestScaling: options.requestScaling,
      jobs: { runLimitSeconds: 3_600, admissionWindowSeconds: 120, startDeadlineSeconds: 600 },
      databases: {
        outside: { type: "NodePort", host: "192.0.2.1" },
        planChangeMs: options.planChangeMs ?? 600_000,
        previousPasswordMs: 86_400_000,
        volumeGraceMs: 86_400_000,
      },
      metricsPort: 0,
    },
    databaseImages: options.databaseImages && {
      current: options.databaseImages,
      onChange: () => () => false,
      run: async () => {},
    },
    cluster: options.kubeConfig ?? loadKubeConfig({ file: api.kubeconfig }),
    identity: options.identity ?? "test",
    log: silentLogger,
    catalog: {
      current: catalog,
      onChange: (added) => {
        listeners.add(added);
        return () => void listeners.delete(added);
      },
      run: async () => {},
    },
    listOrganizations: options.listOrganizations,
    recordDeployment: options.recordDeployment ?? (async () => {}),
    registryLogin: options.registryLogin,
    closeMetering: options.closeMetering,
    openDeployments: { list: async () => [], supersede: async () => false },
    metering: options.metering,
    metersPlans: options.metersPlans ?? options.metering !== undefined,
    budgets: options.budgets,
    billing: options.billing ?? unlimitedStorage(),
    ledgerTime: options.ledgerTime,
    storeRunLog: options.storeRunLog ?? (async () => {}),
    runs: options.runs ?? {
      record: async (rows) =>
        rows.map(({ id, organization_id }) => ({ id, organization_id, outcome: "recorded" })),
    },
    quotas: options.quotas ?? unlimitedQuotas(),
    ingressProbe: options.ingressProbe,
    sleep: options.sleep,
    ownershipRetry: options.ownershipRetry,
    proofRetry: options.proofRetry,
    certificatePeriodsMs: options.certificatePeriodsMs,
    reservations: options.reservations,
    manager: { leaderElection: options.leaderElection, port: undefined, clock: options.clock },
  });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  running.catch(() => {});
  return {
    catalog,
    metrics: () => manager.registry.metrics(),
    ended: running.then(
      () => undefined,
      (error: unknown) => error,
    ),
    catalogChanged: () => {
      for (const listener of listeners) {
        listener();
      }
    },
    stop: async () => {
      stop.abort();
      await running;
    },
  };
}

/** A ledger without limits, which keeps nothing for the next operator. */
export function unlimitedQuotas(): QuotaLedger {
  const rows = new Map<string, QuotaReservation>();
  let reservations = 0;
  const keyOf = ({ organizationId, projectId }: { organizationId: string; projectId: string }) =>
    `${organizationId}/${projectId}`;
  return {
    reserve: async (request) => {
      reservations += 1;
      const version = String(reservations);
      rows.set(keyOf(request), {
        organization_id: request.organizationId,
        project_id: request.projectId,
        plan: request.plan,
        scope: request.limit?.scope ?? null,
        slots: request.amount,
        taken_at: new Date(),
        idle_seconds: 0,
        version,
      });
      return { reserved: true, version };
    },
    release: async (identity) => rows.delete(keyOf(identity)),
    list: async () => [...rows.values()],
  };
}

/** A ledger that accepts every hour of storage, and settles no cycle. */
export function unlimitedStorage(): BillingLedger {
  return {
    record: async (rows) =>
      rows.map(({ project_uid, hour_index }) => ({ project_uid, hour_index, outcome: "recorded" })),
    last: async () => undefined,
    settle: async () => 0,
  };
}

/** Waits, for a minute and a half at most, until a probe answers something true. @throws what the probe threw last, or that it took too long */
export function eventually<T>(probe: () => Promise<T | undefined | false>, timeoutMs = 90_000): Promise<T> {
  return waitFor(String(probe), timeoutMs, probe, 50);
}

/** Nothing is under way any more in an operator that has not written for so long. */
const QUIET_MS = 1_500;

/**
 * Waits, for two minutes at most, until operators have written nothing for a while: before that, what they do not
 * write shows nothing.
 * @param more what else must not change meanwhile
 * @returns how many writes there are
 */
export async function untilUnchanged(cluster: TestCluster, more: () => number = () => 0): Promise<number> {
  const count = async () => [(await cluster.operatorWrites()).length, more()] as const;
  let before = await count();
  return waitFor("the operator to write nothing", 120_000, async () => {
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    const [writes, others] = await count();
    const still = writes === before[0] && others === before[1];
    before = [writes, others];
    return still && writes;
  });
}

/** Does what the Deployment controller and kubelets would: every instance of the current spec serves. */
export async function serveDeployment(client: KubeClient, ref: ObjectRef): Promise<void> {
  const live = await client.get<KubernetesObject & { spec: { replicas: number } }>(
    resources.deployments,
    ref,
  );
  const { replicas } = live.spec;
  const status = {
    observedGeneration: live.metadata?.generation,
    replicas,
    updatedReplicas: replicas,
    readyReplicas: replicas,
    availableReplicas: replicas,
  };
  await client.patch(resources.deployments, ref, { status }, { subresource: "status" });
}

/**
 * Plays the Deployment controller for as long as it takes until a probe answers: the operator may write a Deployment again
 * after it was served.
 */
export function whileServed<T>(
  client: KubeClient,
  ref: ObjectRef,
  probe: () => Promise<T | undefined | false>,
): Promise<T> {
  return eventually(async () => {
    await serveDeployment(client, ref);
    return probe();
  });
}

/** A project's `Type=Status/Reason` conditions. */
export async function conditionsOf(client: KubeClient, ref: ObjectRef): Promise<string[]> {
  const project = await client.get<Project>(projectResource, ref);
  return (project.status?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status}/${reason}`);
}

/** Whether an object exists and is not being deleted. */
export async function exists(client: KubeClient, resource: Resource, ref: ObjectRef): Promise<boolean> {
  const found = await client.getOrUndefined(resource, ref);
  return found !== undefined && !found.metadata?.deletionTimestamp;
}

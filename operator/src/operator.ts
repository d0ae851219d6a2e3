/** Puts the operator together: one manager, three controllers. It starts with `manager.run`. */

import type { KubeConfig } from "@kubernetes/client-node";
import type { Catalog } from "@slipway/crds";
import type { BackoffOptions, MountedFile } from "@slipway/kube";
import type { Config } from "./config.ts";
import { addDomainClaimController } from "./domainclaim/controller.ts";
import { OwnershipChecks } from "./domainclaim/ownershipChecks.ts";
import { createTxtLookup } from "./domainclaim/txtLookup.ts";
import { registerProjectMetrics } from "./metrics.ts";
import { addOrganizationController, createNamespaceStore } from "./organization/controller.ts";
import { addProjectController } from "./project/controller.ts";
import { type OpenDeployments, runDeploymentReaper } from "./project/deploymentReaper.ts";
import {
  addDeploymentRecords,
  DeploymentRecords,
  type RecordDeployment,
} from "./project/deploymentRecords.ts";
import { createIngressProbe, type IngressProbe } from "./project/http/ingressProbe.ts";
import { RouteCheck } from "./project/http/routeCheck.ts";
import { SlotKeeper, type SlotLedger } from "./project/slotKeeper.ts";
import { runSlotReaper } from "./project/slotReaper.ts";
import { createProjectStores } from "./project/stores.ts";
import { withBackoff } from "./registry/backoff.ts";
import { ecrLogin, type RegistryLogin } from "./registry/ecr.ts";
import { type Logger, Manager, type ManagerOptions } from "./runtime/index.ts";

export interface OperatorOptions {
  config: Omit<Config, "ledgerUrl" | "catalogFile" | "logLevel">;
  cluster: KubeConfig | { url: string };
  /** Unique name of this process. */
  identity: string;
  log: Logger;
  catalog: Pick<MountedFile<Catalog>, "current" | "onChange" | "run">;
  /** Reads the ids of all organizations. */
  listOrganizations: () => Promise<string[]>;
  /** Writes a deployment into the ledger. */
  recordDeployment: RecordDeployment;
  /** Deployments whose end the ledger does not have. */
  openDeployments: OpenDeployments;
  /** Counts what organizations and plans have only so many of. */
  slots: SlotLedger;
  /** Pauses between two look-ups of a domain's owner, where they are not the usual ones. */
  ownershipRetry?: BackoffOptions;
  /** In place of the one that asks `config.ingress.probeUrl`. */
  ingressProbe?: IngressProbe;
  /** In place of the one that asks AWS. */
  registryLogin?: RegistryLogin;
  /** Settings of the manager that tests change. */
  manager?: Partial<ManagerOptions>;
}

/** Builds the operator. Nothing is read or written before it runs. */
export function createOperator(options: OperatorOptions): Manager {
  const { config, cluster, identity, log, catalog } = options;
  const manager = new Manager({
    name: "slipway.dev/operator",
    cluster,
    identity,
    log,
    leaderElection: { namespace: config.namespace, name: "slipway-operator" },
    port: config.metricsPort,
    ...options.manager,
  });

  const namespaces = createNamespaceStore(manager);
  addOrganizationController(manager, namespaces, {
    list: options.listOrganizations,
    dnsNamespace: config.dnsNamespace,
    egressDeniedCidrs: config.egressDeniedCidrs,
    systemNamespace: config.namespace,
    acmeIngressNamespace:
      config.ingress.certificateIssuer === undefined ? undefined : config.ingress.namespace,
  });

  const stores = createProjectStores(manager, namespaces, config.domainZone, config.ingress.allowList);
  const probe =
    options.ingressProbe ??
    (config.ingress.probeUrl ? createIngressProbe(config.ingress.probeUrl) : undefined);
  const slots = new SlotKeeper(options.slots, log, () => manager.clock.monotonic());
  const deploymentRecords = new DeploymentRecords(options.recordDeployment);
  const projects = addProjectController(
    manager,
    {
      stores,
      catalog: () => catalog.current,
      platform: {
        domainZone: config.domainZone,
        reservedHostnames: config.reservedHostnames,
        ingress: config.ingress,
        rolloutDeadlineSeconds: config.rolloutDeadlineSeconds,
      },
      routeCheck: new RouteCheck(probe, manager.clock),
      registryLogin: withBackoff(options.registryLogin ?? ecrLogin(), manager.clock),
      slots,
      deploymentRecords,
    },
    (listener) => catalog.onChange(listener),
  );
  addDeploymentRecords(manager, deploymentRecords, { store: stores.projects, projects });
  manager.addRunnable({
    name: "slots",
    run: (signal) =>
      runSlotReaper({ keeper: slots, client: manager.client, projects: stores.projects, log }, signal),
  });
  manager.addRunnable({
    name: "deployments",
    run: (signal) =>
      runDeploymentReaper(
        { deployments: options.openDeployments, client: manager.client, projects: stores.projects, log },
        signal,
      ),
  });
  addDomainClaimController(manager, {
    claims: stores.claims,
    projects: stores.projects,
    domainZone: config.domainZone,
    ownership: new OwnershipChecks({
      lookup: createTxtLookup({ servers: config.dnsServers }),
      clock: manager.clock,
      random: manager.random,
      retry: options.ownershipRetry,
    }),
  });

  manager.addRunnable({ name: "catalog", leaderOnly: false, run: (signal) => catalog.run(signal) });
  registerProjectMetrics(manager.registry, stores.projects);
  return manager;
}

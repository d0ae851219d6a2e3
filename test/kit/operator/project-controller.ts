/** The project controller alone, for tests that play all other components. */

import { readFile } from "node:fs/promises";
import { type KubernetesObject, Manager, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { type Catalog, organizationOfNamespace, parseCatalog } from "@slipway/crds";
import { silentLogger } from "@slipway/process";
import {
  createRestartMetric,
  InstanceRestarts,
} from "../../../operator/src/applications/instance-restarts.ts";
import { MemberAccess } from "../../../operator/src/databases/common/member-access.ts";
import { Authority } from "../../../operator/src/databases/tls/authority.ts";
import { RouteCheck } from "../../../operator/src/domains/route-check.ts";
import type { CloseMetering } from "../../../operator/src/jobs/deletion.ts";
import { createNamespaceStore } from "../../../operator/src/organizations/controller.ts";
import { projectKinds } from "../../../operator/src/project-kinds.ts";
import { addProjectControllers } from "../../../operator/src/projects/controller.ts";
import {
  addDeploymentRecords,
  DeploymentRecords,
} from "../../../operator/src/projects/deployments/records.ts";
import { QuotaReservations } from "../../../operator/src/projects/quotas/reservations.ts";
import { createProjectStores } from "../../../operator/src/projects/stores.ts";
import type { RegistryLogin } from "../../../operator/src/registry/ecr.ts";
import { type TestCluster, type TestOperator, unlimitedQuotas } from "./harness.ts";

const catalogFile = new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url);

export interface ProjectControllerOptions {
  closeMetering: CloseMetering;
  registryLogin: RegistryLogin;
}

/** Runs it in this process, without leader election, port and limits. */
export async function startProjectController(
  { api }: TestCluster,
  { closeMetering, registryLogin }: ProjectControllerOptions,
): Promise<TestOperator> {
  const catalog: Catalog = parseCatalog(await readFile(catalogFile, "utf8"));
  let listener: (() => void) | undefined;
  const manager = new Manager({
    name: "slipway.dev/operator",
    cluster: loadKubeConfig({ file: api.kubeconfig }),
    identity: "test",
    log: silentLogger,
  });
  const stores = createProjectStores(manager, createNamespaceStore(manager), "apps.test", "traefik");
  const deploymentRecords = new DeploymentRecords(async () => {});
  const kinds = projectKinds({
    applications: {
      platform: {
        domainZone: "apps.test",
        reservedHostnames: [],
        rolloutDeadlineSeconds: 300,
        ingress: {
          className: "traefik",
          namespace: "slipway-ingress",
          annotations: {},
          allowList: "traefik",
        },
      },
      routeCheck: new RouteCheck(undefined, manager.clock),
      restarts: new InstanceRestarts(createRestartMetric(manager.registry), manager.clock),
    },
    jobs: { platform: { runLimitSeconds: 3_600, startDeadlineSeconds: 600 }, closeMetering },
    databases: {
      platform: {
        outside: { type: "None" },
        planChangeMs: 600_000,
        previousPasswordMs: 86_400_000,
        volumeGraceMs: 86_400_000,
        apiserver: () => [],
        systemNamespace: "slipway-system",
        images: () => ({}),
      },
      authority: new Authority({
        client: manager.client,
        clock: manager.clock,
        namespace: "slipway-system",
      }),
      restorer: { restore: async () => undefined },
      fullVolumes: new Set(),
      members: new MemberAccess({ get: () => undefined }, manager.clock),
    },
  });
  const projects = addProjectControllers(
    manager,
    {
      stores,
      catalog: () => catalog,
      kinds,
      registryLogin,
      quotas: new QuotaReservations(unlimitedQuotas(), silentLogger, () => manager.clock.monotonic()),
      deploymentRecords,
      variableRollouts: 5,
    },
    (added) => {
      listener = added;
      return () => {};
    },
    () => () => {},
  );
  addDeploymentRecords(manager, deploymentRecords, { store: stores.projects, projects });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  return {
    catalog,
    catalogChanged: () => listener?.(),
    stop: async () => {
      stop.abort();
      await running;
    },
  };
}

/** An organization's namespace as the organization controller leaves it. */
export async function makeProvisionedNamespace({ client }: TestCluster, name: string): Promise<void> {
  await client.create<KubernetesObject>(resources.namespaces, {
    metadata: {
      name,
      labels: {
        "slipway.dev/role": "organization",
        "slipway.dev/organization": organizationOfNamespace(name) ?? "",
      },
      annotations: { "slipway.dev/guarded": "true" },
    },
  });
}

import { KubeClient } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { connectLedger, insertOrganization, type Ledger, migrateToLatest } from "@slipway/ledger";
import type { AuditLog } from "../../../api-server/src/audit/log.ts";
import type { TestApiserver } from "../../../hack/cluster/apiserver.ts";
import { acquireApiserver } from "../clusters/shared-apiserver.ts";
import { startPostgres, type TestPostgres } from "../servers/postgresql.ts";
import { type Harness, type HarnessOptions, startHarness } from "./harness.ts";
import { bindInOrganization, createRoles, restrictedClient } from "./roles.ts";

/** The application over a real kube-apiserver with the real CRDs, and a real PostgreSQL. No operator runs. */
export interface RealHarness extends Harness {
  apiserver: TestApiserver;
  postgres: TestPostgres;
  ledger: Ledger;
  /** Who may everything: plays kubectl and the operator. */
  admin: KubeClient;
  /** An organization of its own for a test, ready to take projects, and a key with every grant. */
  organization: () => Promise<{ id: string; headers: Record<string, string> }>;
}

/** The API server acts as a user with nothing but the rules of its own roles. */
export async function startRealHarness(
  options: Pick<HarnessOptions, "analytics" | "git" | "builds" | "baseImages" | "exec"> & {
    /** With Slipway's definitions; one that the files of a worker share unless given. It is stopped with the harness. */
    apiserver?: TestApiserver;
    /** Where calls are audited; in `audited` unless given. */
    audit?: (ledger: Ledger) => AuditLog;
  } = {},
): Promise<RealHarness> {
  const [apiserver, postgres] = await Promise.all([options.apiserver ?? acquireApiserver(), startPostgres()]);
  const ledger = connectLedger({ url: postgres.url, applicationName: "test", maxConnections: 20 });
  await migrateToLatest(ledger);
  const admin = KubeClient.fromConfig(loadKubeConfig({ file: apiserver.kubeconfig }));
  await createRoles(admin);
  const harness = await startHarness(restrictedClient(apiserver.kubeconfig), {
    ...options,
    ledger,
    admin,
    audit: options.audit?.(ledger),
  });

  let organizations = 0;
  const organization: RealHarness["organization"] = async () => {
    organizations += 1;
    const id = `org-${organizations}`;
    await insertOrganization(ledger, { id, name: id });
    await harness.namespace(id);
    await bindInOrganization(admin, id);
    return { id, headers: harness.key(id, "* on organization:*", "* on project:*") };
  };
  const close = async () => {
    await harness.close();
    await admin.close();
    await ledger.destroy();
    await postgres.stop();
    await apiserver.stop();
  };
  return { ...harness, apiserver, postgres, ledger, admin, organization, close };
}

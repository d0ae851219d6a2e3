import type { Manager } from "@slipway/controller-runtime";
import { type OpenDeployments, runDeploymentReaper } from "./deployments/reaper.ts";
import { runQuotaReaper } from "./quotas/reaper.ts";
import type { QuotaReservations } from "./quotas/reservations.ts";
import { runUsageReconciler, type UsageLedger } from "./quotas/usage.ts";
import type { ProjectStores } from "./stores.ts";

/** Adds what keeps the ledger's rows about projects equal to the cluster, beside the reconciler of projects. */
export function addLedgerRunnables(
  manager: Manager,
  { projects, secrets }: Pick<ProjectStores, "projects" | "secrets">,
  options: { quotas: QuotaReservations; usage?: UsageLedger; deployments: OpenDeployments },
): void {
  const { client, log } = manager;
  const { quotas, usage, deployments } = options;
  manager.addRunnable({
    name: "quotas",
    // Each has reservations of its own, which wait for the quota that this one releases.
    everyShard: true,
    run: (signal) => runQuotaReaper({ quotas, client, projects, log }, signal),
  });
  if (usage) {
    manager.addRunnable({
      name: "usage",
      run: (signal) => runUsageReconciler({ ledger: usage, projects, secrets, client, log }, signal),
    });
  }
  manager.addRunnable({
    name: "deployments",
    run: (signal) => runDeploymentReaper({ deployments, client, projects, log }, signal),
  });
}

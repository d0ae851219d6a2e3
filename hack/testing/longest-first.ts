import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { root } from "../lib/paths.ts";

/**
 * How long the longest files take, in seconds: roughly, from a run on two cores. Only their order matters. Vitest knows by
 * itself only what it has run before, which in a fresh clone is nothing.
 */
const SECONDS: Readonly<Record<string, number>> = {
  "api-server/src/cluster-silence.integration.test.ts": 16,
  "api-server/src/exec/exec.integration.test.ts": 25,
  "api-server/src/ledger/silence.integration.test.ts": 30,
  "api-server/src/main.integration.test.ts": 60,
  "api-server/src/projects/application-settings.integration.test.ts": 25,
  "api-server/src/projects/settings.integration.test.ts": 19,
  "api-server/src/replicas.integration.test.ts": 30,
  "collector/src/drains/drains.integration.test.ts": 235,
  "collector/src/full-buffer.integration.test.ts": 80,
  "collector/src/instance-samples.integration.test.ts": 45,
  "collector/src/kills.integration.test.ts": 25,
  "collector/src/log-buffer.integration.test.ts": 25,
  "collector/src/project-logs.integration.test.ts": 55,
  "crds/src/rules.integration.test.ts": 13,
  "hack/chart/chart.integration.test.ts": 120,
  "hack/cluster/kind.integration.test.ts": 30,
  "hack/cluster/test-cluster.integration.test.ts": 25,
  "hack/images/databases.integration.test.ts": 75,
  "operator/src/applications/pre-deploy-kills.integration.test.ts": 35,
  "operator/src/applications/pre-deploy.integration.test.ts": 25,
  "operator/src/billing/metering.integration.test.ts": 35,
  "operator/src/databases/mariadb/group.integration.test.ts": 70,
  "operator/src/databases/silent-members.integration.test.ts": 20,
  "operator/src/databases/valkey/servers.integration.test.ts": 50,
  "operator/src/domains/domains.integration.test.ts": 190,
  "operator/src/jobs/job.integration.test.ts": 16,
  "operator/src/jobs/runs/one-off-kills.integration.test.ts": 25,
  "operator/src/jobs/runs/one-off.integration.test.ts": 40,
  "operator/src/organizations/organization.integration.test.ts": 25,
  "operator/src/projects/deployments/deployments.integration.test.ts": 45,
  "operator/src/projects/project.integration.test.ts": 50,
  "operator/src/projects/quotas/quotas.integration.test.ts": 14,
  "operator/src/projects/rejected-spec.integration.test.ts": 40,
  "operator/src/references/references.integration.test.ts": 20,
  "operator/src/sleep/sleep.integration.test.ts": 120,
  "operator/src/variable-groups/kills.integration.test.ts": 35,
  "operator/src/variable-groups/variable-groups.integration.test.ts": 40,
  "packages/controller-runtime/src/client/kube.integration.test.ts": 20,
  "packages/controller-runtime/src/runtime.integration.test.ts": 55,
  "packages/ledger/src/settlement-sums.integration.test.ts": 17,
  "recovery/src/jobs/jobs.integration.test.ts": 25,
  "test/chaos/cluster.chaos.test.ts": 185,
  "test/chaos/databases/full-disk.chaos.test.ts": 175,
  "test/chaos/databases/histories.chaos.test.ts": 150,
  "test/chaos/databases/mariadb.chaos.test.ts": 170,
  "test/chaos/databases/postgresql.chaos.test.ts": 155,
  "test/chaos/ledger.chaos.test.ts": 155,
  "test/chaos/pods.chaos.test.ts": 70,
  "test/chaos/writes.chaos.test.ts": 220,
  "test/e2e/alerts.e2e.test.ts": 230,
  "test/e2e/analytics-faults.e2e.test.ts": 50,
  "test/e2e/applications-access-lists.e2e.test.ts": 90,
  "test/e2e/applications-rollouts.e2e.test.ts": 150,
  "test/e2e/applications-settings.e2e.test.ts": 75,
  "test/e2e/applications-volumes.e2e.test.ts": 145,
  "test/e2e/autoscaling-requests.e2e.test.ts": 75,
  "test/e2e/backups-faults.e2e.test.ts": 120,
  "test/e2e/backups-s3.e2e.test.ts": 80,
  "test/e2e/backups.e2e.test.ts": 135,
  "test/e2e/builds-engines.e2e.test.ts": 145,
  "test/e2e/builds-failures.e2e.test.ts": 220,
  "test/e2e/builds-faults.e2e.test.ts": 180,
  "test/e2e/builds-runtimes.e2e.test.ts": 205,
  "test/e2e/builds.e2e.test.ts": 200,
  "test/e2e/console.e2e.test.ts": 80,
  "test/e2e/databases-clickhouse.e2e.test.ts": 40,
  "test/e2e/databases-kubectl.e2e.test.ts": 100,
  "test/e2e/databases-mariadb.e2e.test.ts": 205,
  "test/e2e/databases-postgresql.e2e.test.ts": 250,
  "test/e2e/databases-valkey.e2e.test.ts": 100,
  "test/e2e/email.e2e.test.ts": 60,
  "test/e2e/exec.e2e.test.ts": 120,
  "test/e2e/jobs-failover.e2e.test.ts": 180,
  "test/e2e/jobs-runs.e2e.test.ts": 145,
  "test/e2e/jobs.e2e.test.ts": 260,
  "test/e2e/log-drains.e2e.test.ts": 60,
  "test/e2e/logs-search.e2e.test.ts": 90,
  "test/e2e/metrics-history.e2e.test.ts": 235,
  "test/e2e/notifications.e2e.test.ts": 60,
  "test/e2e/one-off-runs.e2e.test.ts": 145,
  "test/e2e/operator-failover.e2e.test.ts": 55,
  "test/e2e/pre-deploy.e2e.test.ts": 245,
  "test/e2e/readme.e2e.test.ts": 180,
  "test/e2e/references-renewal.e2e.test.ts": 205,
  "test/e2e/sleep.e2e.test.ts": 120,
  "test/e2e/workers.e2e.test.ts": 220,
  "test/simulator/simulation.test.ts": 75,
  "test/tracing.integration.test.ts": 50,
};

const secondsOf = ({ moduleId }: TestSpecification): number => SECONDS[relative(root, moduleId)] ?? 0;

/** Starts the longest files of a group first, so that no worker is left alone with one of them at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const groupOf = ({ project }: TestSpecification) => project.config.sequence.groupOrder;
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => groupOf(a) - groupOf(b) || secondsOf(b) - secondsOf(a));
  }
}

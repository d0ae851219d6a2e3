import { KubeClient, loadKubeConfig } from "@slipway/controller-runtime";
import { connectLedger } from "@slipway/ledger";
import { expect } from "vitest";
import {
  type Expectations,
  type Records,
  unsettled,
  type Violation,
  violations,
} from "../../chaos/support/checks.ts";
import { ClusterObserver } from "../../chaos/support/cluster-observer.ts";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { type JobRun, tenThousandths } from "./jobs.ts";
import { systemNamespace } from "./operator.ts";
import { stack } from "./stack.ts";

/** The stack's cluster and ledger, seen past the operator's and the API's own eyes. */
export interface StackWitness {
  /** What is known of some projects now. */
  records(projects: readonly string[]): Promise<Records>;
  /** Waits until nothing of them is under way, and gives all that contradicts what was promised of runs. */
  judge(projects: readonly string[], expectations?: Expectations): Promise<Violation[]>;
  stop(): Promise<void>;
}

export async function startWitness(): Promise<StackWitness> {
  const client = KubeClient.fromConfig(loadKubeConfig({ file: stack.kubeconfig }), { userAgent: "witness" });
  const ledger = connectLedger({ url: await ledgerUrl(), applicationName: "witness", statementTimeoutMs: 0 });
  const witness = new ClusterObserver(client, ledger);
  return {
    records: (projects) => witness.records(projects),
    judge: (projects, expectations) =>
      eventually(async () => {
        const records = await witness.records(projects);
        const left = unsettled(records);
        if (left.length > 0) {
          throw new Error(`not over: ${JSON.stringify(left)}`);
        }
        return violations(records, expectations);
      }),
    stop: async () => {
      witness.stop();
      await client.close();
      await ledger.destroy();
    },
  };
}

/**
 * Holds what the API lists against what the pods say of themselves: the same times, and the minutes and the amount that
 * follow from them. Of cancelled runs only the times.
 * @param price BRL cents a minute, in ten-thousandths
 */
export function expectAsPods(runs: readonly JobRun[], { pods }: Records, price: number): void {
  for (const run of runs) {
    const own = pods.filter((pod) => pod.run === run.id);
    expect(own.map(({ name }) => name)).toHaveLength(1);
    const { startedAt, finishedAt } = own[0] ?? {};
    const seconds = (Number(finishedAt) - Number(startedAt)) / 1_000;
    expect(run).toMatchObject({
      started_at: startedAt?.toISOString(),
      finished_at: finishedAt?.toISOString(),
      duration_seconds: seconds,
      currency: "brl",
    });
    if (run.status === "cancelled") {
      continue;
    }
    const minutes = Math.max(1, Math.ceil(seconds / 60));
    expect(run.billed_minutes).toBe(minutes);
    expect(tenThousandths(run.amount)).toBe(minutes * price);
  }
}

/** The embedded ledger's own URL, by an address that this machine can reach. */
async function ledgerUrl(): Promise<string> {
  const where = { namespace: systemNamespace, name: "slipway-ledger" };
  const secret = await cluster.core.readNamespacedSecret(where);
  const service = await cluster.core.readNamespacedService(where);
  const url = new URL(Buffer.from(secret.data?.url ?? "", "base64").toString("utf8"));
  url.hostname = service.spec?.clusterIP ?? "";
  return url.href;
}

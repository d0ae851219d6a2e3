import { KubeClient } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { connectLedger } from "@slipway/ledger";
import { expect } from "vitest";
import {
  type Expectations,
  type Records,
  unfinished,
  type Violation,
  violations,
} from "../../chaos/support/checks.ts";
import { ClusterObserver } from "../../chaos/support/cluster-observer.ts";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { serviceAddress } from "./forward.ts";
import { type JobRun, tenThousandths } from "./jobs.ts";
import { systemNamespace } from "./operator.ts";
import { stack } from "./stack.ts";

/** Reads the stack's cluster and ledger directly, without operator and API. */
export interface StackObserver {
  /** Pods, runs and charges of some projects now. */
  records(projects: readonly string[]): Promise<Records>;
  /** Waits until none of their runs is active. @returns every violation of the rules of runs */
  check(projects: readonly string[], expectations?: Expectations): Promise<Violation[]>;
  stop(): Promise<void>;
}

export async function startStackObserver(): Promise<StackObserver> {
  const client = KubeClient.fromConfig(loadKubeConfig({ file: stack.kubeconfig }), { userAgent: "observer" });
  const ledger = connectLedger({
    url: await ledgerUrl(),
    applicationName: "observer",
    statementTimeoutMs: 0,
  });
  const observer = new ClusterObserver(client, ledger);
  return {
    records: (projects) => observer.records(projects),
    check: (projects, expectations) =>
      eventually(async () => {
        const records = await observer.records(projects);
        const left = unfinished(records);
        if (left.length > 0) {
          throw new Error(`not over: ${JSON.stringify(left)}`);
        }
        return violations(records, expectations);
      }),
    stop: async () => {
      observer.stop();
      await client.close();
      await ledger.destroy();
    },
  };
}

/**
 * Compares the runs that the API lists with the status of their pods: the same times, and the minutes and the amount that
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

/** The embedded ledger's own URL, by an address that this machine can reach on every kind of cluster. */
export async function ledgerUrl(): Promise<string> {
  const where = { namespace: systemNamespace, name: "slipway-ledger" };
  const secret = await cluster.core.readNamespacedSecret(where);
  const url = new URL(Buffer.from(secret.data?.url ?? "", "base64").toString("utf8"));
  const { host, port } = await serviceAddress(where.namespace, where.name, Number(url.port) || 5432);
  [url.hostname, url.port] = [host, String(port)];
  return url.href;
}

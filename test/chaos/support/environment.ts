import { readFileSync } from "node:fs";
import type { Project } from "@slipway/crds";
import type { Script } from "../../../hack/cluster/kwok-config.ts";
import { waitFor } from "../../../hack/lib/wait.ts";
import {
  type JobPlatform,
  jobProject,
  projectResource,
  startJobPlatform,
  writePlainKubeconfig,
} from "../../kit/processes/job-platform.ts";
import { OperatorProcess } from "../../kit/processes/operator-process.ts";
import { ApiserverProxy } from "./apiserver-proxy.ts";
import { type Expectations, unfinished, type Violation, violations } from "./checks.ts";
import { ClusterObserver } from "./cluster-observer.ts";
import { LedgerProxy } from "./ledger-proxy.ts";
import type { ReportedViolation } from "./observation-log.ts";

/** An operator of its own between two proxies, and an observer that bypasses them. */
export interface ChaosEnvironment {
  platform: JobPlatform;
  proxy: ApiserverProxy;
  ledgerProxy: LedgerProxy;
  operator: OperatorProcess;
  observer: ClusterObserver;
  namespace: string;
  /** Whether a cut of the ledger's connection kills the operator as well. */
  kill: { onLedgerCut: boolean };
  /** Another operator beside the first. It goes to the apiserver through the same proxy. */
  addOperator(): OperatorProcess;
  /** Creates jobs, one for each script, minutely by default; waits until their schedules are followed. @returns their ids */
  jobs(name: string, scripts: readonly Script[], cron?: string): Promise<string[]>;
  /** Closes the schedules, waits until no run is active, and compares all records. @returns the violations */
  closeAndCheck(projects: readonly string[], expectations?: Expectations): Promise<ReportedViolation[]>;
  stop(): Promise<void>;
}

/** Starts an environment; takes about 25 s. The operator runs. */
export async function startEnvironment(env: Record<string, string> = {}): Promise<ChaosEnvironment> {
  const platform = await startJobPlatform();
  const { cluster, client, ledger, postgres } = platform;
  const namespace = platform.namespaces[0] ?? "";
  const operators: OperatorProcess[] = [];
  /** kill -9, and immediately the kubelet's new container. */
  const killOperator = async () => {
    await operators[0]?.kill();
    operators[0]?.start();
  };
  const proxy = new ApiserverProxy({ upstream: cluster.url, dir: cluster.dir, killOperator });
  const kill = { onLedgerCut: true };
  const ledgerProxy = new LedgerProxy(postgres.port, () => {
    if (kill.onLedgerCut) {
      void killOperator();
    }
  });
  const kubeconfig = await writePlainKubeconfig(cluster.dir, "proxied", await proxy.listen());
  await ledgerProxy.up();
  const ledgerUrl = ledgerProxy.url(postgres.url);
  const add = () => {
    const identity = `operator-${operators.length}`;
    const added = new OperatorProcess({
      kubeconfig,
      ledgerUrl,
      identity,
      dir: cluster.dir,
      env,
      restarts: true,
    });
    operators.push(added);
    return added;
  };
  const operator = add();
  await operator.warmUp();
  operator.start();
  const observer = new ClusterObserver(client, ledger);
  const stop = async () => {
    observer.stop();
    for (const running of operators) {
      running.thaw();
      await running.kill();
    }
    await proxy.close();
    await ledgerProxy.down();
    await platform.stop();
  };
  try {
    await platform.provisioned();
  } catch (error) {
    const log = readFileSync(operator.log, "utf8")
      .split("\n")
      .slice(-15)
      .map((line) => line.slice(0, 300))
      .join("\n");
    await stop();
    throw new Error(`${(error as Error).message}\n${log}`);
  }
  return {
    platform,
    proxy,
    ledgerProxy,
    operator,
    observer,
    namespace,
    kill,
    addOperator: () => {
      const added = add();
      added.start();
      return added;
    },
    jobs: async (name, scripts, cron) => {
      const ids = scripts.map((_, index) => `${name}-${index}`);
      for (const [index, script] of scripts.entries()) {
        await client.create(projectResource, jobProject({ namespace, name: ids[index] ?? "" }, script, cron));
      }
      for (const id of ids) {
        await waitFor(`the schedule of ${id}`, 90_000, async () => {
          const project = await client.get<Project>(projectResource, { namespace, name: id });
          return project.status?.job?.scheduledSince !== undefined;
        });
      }
      return ids;
    },
    closeAndCheck: async (projects, expectations) => {
      for (const name of projects) {
        await setClosed({ platform, namespace }, name, true);
      }
      let open: Violation[] = [];
      const final = await waitFor("all runs to end and be charged", 180_000, async () => {
        const records = await observer.records(projects);
        const closed = await Promise.all(
          projects.map(async (name) => {
            const project = await client.get<Project>(projectResource, { namespace, name });
            return project.status?.job?.scheduleClosedAt !== undefined;
          }),
        );
        open = [
          ...unfinished(records),
          ...projects
            .filter((_, index) => !closed[index])
            .map((subject) => ({ rule: "schedules are closed", subject, detail: "it is not acknowledged" })),
        ];
        if (open.length > 0) {
          return false;
        }
        // Events that it has not received yet would be missing from one and not from the other.
        return (await observer.isUpToDate(projects)) && observer.records(projects);
      }).catch((error: Error) => {
        if (open.length === 0) {
          throw error;
        }
      });
      const wrong = final ? violations(final, expectations) : open;
      const records = final ?? (await observer.records(projects));
      const crashes = operators.flatMap((one) => one.crashes);
      wrong.push(
        ...crashes.map((detail) => ({ rule: "operators do not crash", subject: "operator", detail })),
      );
      return wrong.map((one) => ({ ...one, log: observer.log(one.subject, records) }));
    },
    stop,
  };
}

/** Closes a project's schedule, as its deletion does first, or opens it again. */
export async function setClosed(
  { platform, namespace }: { platform: Pick<JobPlatform, "client">; namespace: string },
  project: string,
  closed: boolean,
): Promise<void> {
  const job = { closedAt: closed ? new Date().toISOString() : null };
  await platform.client.patch(projectResource, { namespace, name: project }, { spec: { job } });
}

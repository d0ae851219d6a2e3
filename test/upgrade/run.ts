/** Upgrades and goes back while users work; the stack runs the first release already. */
import { setTimeout as sleep } from "node:timers/promises";
import type { V1Pod } from "@kubernetes/client-node";
import { cluster } from "../e2e/support/cluster.ts";
import { createOrganization } from "../e2e/support/organization.ts";
import { namespaceOf } from "../e2e/support/stack.ts";
import { startStackObserver } from "../e2e/support/stack-observer.ts";
import { observeWindow } from "../hostile/run.ts";
import { startVictim, type Victim } from "../hostile/victim.ts";
import { startDatabases } from "./databases.ts";
import { install, RATE_LIMIT_SCALE } from "./releases.ts";
import type { Outcome, Step } from "./report.ts";

/** A release and where its bundle is. */
export interface Release {
  readonly version: string;
  readonly bundle: string;
}

export interface RunOptions {
  /** The first one is installed. */
  readonly releases: readonly Release[];
  /** Milliseconds into each step after which it is killed, one after the other; then it is left to its end. */
  readonly kills: readonly number[];
  readonly log: (line: string) => void;
}

/** For which the load goes on after a step: what it left undone shows. */
const AFTER_MS = 20_000;
/** What ends by itself: a run, a build, a backup. */
const TEMPORARY = ["Job", "JobRun", "Build", "Backup"];

export async function run({
  releases,
  kills,
  log,
}: RunOptions): Promise<{ steps: Step[]; outcome: Outcome }> {
  log("preparing");
  const organization = await createOrganization("upgraded");
  // Before there is a job: a run that is due while the rest is prepared has been charged, and its pod deleted, by the end of that.
  const observer = await startStackObserver();
  const databases = await startDatabases(organization);
  const victim = await startVictim(organization, { rateLimitScale: RATE_LIMIT_SCALE, builds: true }).catch(
    async (error: unknown) => {
      await observer.stop();
      await databases.remove();
      throw error;
    },
  );
  const steps: Step[] = [];
  try {
    for (const [index, to] of releases.slice(1).entries()) {
      const name = `${releases[index]?.version} → ${to.version}`;
      log(name);
      steps.push(await step(name, to));
      log(`${name} took ${steps.at(-1)?.seconds.toFixed(0)} s`);
    }
    const rows = await databases.finish();
    const { dueRuns, missedRuns, acknowledgedRows, lostRows } = await victim.finish();
    const violations = await observer.check([victim.job]);
    const ofVictim = { engine: "PostgreSQL", acknowledged: acknowledgedRows, lost: lostRows };
    return {
      steps,
      outcome: {
        dueRuns,
        missedRuns,
        violations: violations.map(({ rule, subject, detail }) => `${rule}: ${subject}: ${detail}`),
        rows: [ofVictim, ...rows],
      },
    };
  } finally {
    await observer.stop();
    await Promise.all([victim.remove(), databases.remove()]);
  }

  async function step(name: string, { bundle }: Release): Promise<Step> {
    const before = await podsOf(organization.organization_id);
    const done = new AbortController();
    const building = keepBuilding(victim, done.signal);
    let killed = 0;
    let seconds = 0;
    const { seen } = await observeWindow(victim, async () => {
      const start = performance.now();
      for (const after of kills) {
        killed += (await install(bundle, after)) ? 1 : 0;
      }
      await install(bundle);
      seconds = (performance.now() - start) / 1_000;
      await sleep(AFTER_MS);
    });
    done.abort();
    const builds = await building;
    const after = await podsOf(organization.organization_id);
    const replacedPods = [...before].filter(([uid]) => !after.has(uid)).map(([, pod]) => pod);
    return { name, seconds, kills: killed, seen, replacedPods, builds };
  }
}

/** Builds one after the other: some build is running whatever is replaced. */
async function keepBuilding({ build }: Victim, done: AbortSignal): Promise<Step["builds"]> {
  const builds = { succeeded: 0, failures: [] as string[] };
  while (!done.aborted && build !== undefined) {
    await build().then(
      () => {
        builds.succeeded += 1;
      },
      async (error: Error) => {
        builds.failures.push(error.message);
        await sleep(1_000);
      },
    );
  }
  return builds;
}

/** Pods of an organization that do not end by themselves, by their UIDs. */
async function podsOf(organization: string): Promise<Map<string, string>> {
  const { items } = await cluster.core.listNamespacedPod({ namespace: namespaceOf(organization) });
  const lasting = ({ metadata, status }: V1Pod): boolean =>
    !(metadata?.ownerReferences ?? []).some(({ kind }) => TEMPORARY.includes(kind)) &&
    status?.phase === "Running";
  return new Map(items.filter(lasting).map(({ metadata }) => [metadata?.uid ?? "", metadata?.name ?? ""]));
}

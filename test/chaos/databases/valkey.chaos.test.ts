import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { recordFigures } from "../../../hack/testing/figures.ts";
import { type Acknowledged, longestGap, lostRows, Writer } from "../../e2e/support/acknowledged.ts";
import { apiClient, deleteProjects } from "../../e2e/support/api.ts";
import { cluster } from "../../e2e/support/cluster.ts";
import {
  createDatabase,
  type DatabaseProject,
  podsOfDatabase,
  readDatabase,
  untilReady,
} from "../../e2e/support/databases.ts";
import { eventually } from "../../e2e/support/eventually.ts";
import { processOf, signalProcess } from "../../e2e/support/process.ts";
import { connectPod, connectValkey, readRows, rowsOver, valkeyProject } from "../../e2e/support/valkey.ts";
import { isLong } from "../../kit/long.ts";

/**
 * A key-value service of three instances under faults, with writers that remember every acknowledged row: one from outside
 * through the Service, and one at each pod past it. Its replication is asynchronous: what a primary acknowledged in its last
 * moments may be lost, and nothing else.
 */

// Every step waits for a service to be whole again, on a machine that may do much else.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 400_000 });

const call = apiClient();
let project: DatabaseProject;
beforeAll(async () => {
  project = await createDatabase(call, valkeyProject("db-premium_plus", "key_value"));
  await untilReady(project, 360_000);
});
afterAll(() => deleteProjects(call, project ? [project.id] : []));

/** Words of the server's command line: a Sentinel is the same program with another file. */
const SERVER = "valkey-server";

const primaryNow = async (): Promise<string> => {
  const primary = (await readDatabase(project)).status?.database?.primary;
  if (!primary) {
    throw new Error("no instance takes writes");
  }
  return primary;
};

const names = async (): Promise<string[]> =>
  (await podsOfDatabase(project)).map(({ metadata }) => metadata?.name ?? "");

/** Deletes pods by force, and waits until others have their names. */
const losePods = async (lost: readonly string[]): Promise<void> => {
  const { namespace } = project;
  const uids = new Set((await podsOfDatabase(project)).map(({ metadata }) => metadata?.uid));
  await Promise.all(
    lost.map((name) => cluster.core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 })),
  );
  await eventually(async () => {
    const pods = await podsOfDatabase(project);
    expect(pods.filter(({ metadata }) => !uids.has(metadata?.uid))).toHaveLength(lost.length);
  });
};

interface Fault {
  name: string;
  /** Milliseconds before the fault in which what was acknowledged may be lost. */
  windowMs: number;
  befalls: (primary: string) => Promise<void>;
}

/** What befalls the primary; resolves once it has had its effect. */
const faults: Fault[] = [
  {
    name: "the primary's pod is deleted by force",
    windowMs: 1_000,
    befalls: (primary) => losePods([primary]),
  },
  {
    name: "the server process is killed",
    windowMs: 1_000,
    befalls: (primary) => signalProcess(primary, SERVER, "SIGKILL"),
  },
  {
    name: "the server process is frozen, and wakes when another one has taken over",
    windowMs: 1_000,
    befalls: async (primary) => {
      const frozen = await processOf(primary, SERVER);
      process.kill(frozen, "SIGSTOP");
      await eventually(async () => expect(await primaryNow()).not.toBe(primary));
      process.kill(frozen, "SIGCONT");
    },
  },
  {
    name: "two of three are lost, the primary among them",
    windowMs: 1_000,
    befalls: async (primary) => {
      const others = (await names()).filter((name) => name !== primary);
      await losePods([primary, ...others.slice(0, 1)]);
    },
  },
  {
    name: "all three are lost at once",
    windowMs: 1_000,
    befalls: async () => losePods(await names()),
  },
];

// The servers' own tests have a crashed primary and lost data, and the end-to-end tests lost pods.
test.skipIf(!isLong).for(faults)(
  "$name: nothing is lost but what the primary said last (--long)",
  async ({ name, windowMs, befalls }) => {
    await untilReady(project);
    const outside = new Writer(async () => rowsOver(await connectValkey(project), "outside"));
    const writers = [
      outside,
      ...[0, 1, 2].map((ordinal) => {
        const pod = `${project.id}-${ordinal}`;
        return new Writer(async () => rowsOver(await connectPod(project, pod), pod), 100);
      }),
    ];
    const before = await primaryNow();
    let struck = 0;
    try {
      await outside.untilWrites();
      await sleep(2_000);
      struck = performance.now();
      await befalls(before);
      await outside.untilWrites();
      // The failed one recovers automatically.
      await untilReady(project);
      await outside.untilWrites();
    } finally {
      await Promise.all(writers.map((writer) => writer.stop()));
    }
    const acknowledged: Acknowledged[] = writers.flatMap((writer) => writer.acknowledged);
    const client = await eventually(() => connectValkey(project));
    const rows = await readRows(client).finally(() => client.disconnect());
    const lost = new Set(lostRows(acknowledged, rows));
    const missing = acknowledged.filter(({ id }) => lost.has(id));
    await recordFigures("failover", `Valkey: ${name}`, {
      "rows acknowledged": acknowledged.length,
      "lost within the window that its replication has": missing.length,
      "ms at most without one from outside": Math.round(longestGap(outside.acknowledged)),
    });
    expect(missing.filter(({ at }) => at < struck - windowMs)).toEqual([]);
  },
);

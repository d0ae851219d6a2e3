import type { KubeConfig } from "@kubernetes/client-node";
import { resources } from "@slipway/controller-runtime";
import { type JobRun, jobRunName, labels, type Project } from "@slipway/crds";
import { connectLedger, findJobRun, type Ledger, migrateToLatest, recordJobRuns } from "@slipway/ledger";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CrashingProcess, type WriteKey } from "../../../../test/kit/operator/crashing-process.ts";
import { grantedConfig } from "../../../../test/kit/operator/grant.ts";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  whileServed,
} from "../../../../test/kit/operator/harness.ts";
import { makePod, serving } from "../../../../test/kit/operator/pods.ts";
import { JobPlayer } from "../../../../test/kit/operator/pre-deploy.ts";
import { exampleProject } from "../../../../test/kit/operator/projects.ts";
import { startPostgres, type TestPostgres } from "../../../../test/kit/servers/postgresql.ts";
import { jobRunResource, projectResource } from "../../resources.ts";

/** One operator after the other crashes right after each write that none before it has made, those to the ledger too. */

const namespace = "slipway-org-alpha";
const projectId = "pkilled";
const ref = (name = projectId) => ({ namespace, name });
const image = { url: "registry.example/team/app:1", isPublic: true };
const digest = `sha256:${"a".repeat(64)}`;

let cluster: TestCluster;
let postgres: TestPostgres;
let ledger: Ledger;
let config: KubeConfig;
let player: JobPlayer;
let stopPlaying: () => Promise<void>;
let life: CrashingProcess | undefined;
let lives = 0;
let endLives: () => Promise<void>;

beforeAll(async () => {
  [cluster, postgres] = await Promise.all([startCluster(), startPostgres()]);
  ledger = connectLedger({ url: postgres.url, applicationName: "test", maxConnections: 4 });
  await migrateToLatest(ledger);
  const everything = [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }];
  config = await grantedConfig(cluster, "default", { cluster: everything, namespaced: {} });
  player = new JobPlayer(cluster.client, namespace, labels.oneOffRun);
  player.end = () => undefined;
  stopPlaying = player.play();
  endLives = liveAndDie();
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await endLives?.();
  await stopPlaying?.();
  await ledger?.destroy();
  await postgres?.stop();
  await cluster?.stop();
});

/** One operator after the other. @returns what ends the last of them */
function liveAndDie(): () => Promise<void> {
  const written = new Set<WriteKey>();
  let isOver = false;
  const living = (async () => {
    while (!isOver) {
      const process = await CrashingProcess.start(cluster.api.url, written);
      life = process;
      lives += 1;
      const clusters = config.clusters.map((one) => ({
        name: one.name,
        server: process.server,
        skipTLSVerify: true,
      }));
      const kubeConfig = Object.assign(Object.create(Object.getPrototypeOf(config)), config, { clusters });
      const operator = await startOperator(cluster, {
        kubeConfig,
        listOrganizations: async () => ["alpha"],
        runs: {
          record: (rows) =>
            process.write(`ledger ${rows.map(({ id }) => id).join()}`, () => recordJobRuns(ledger, rows)),
        },
      });
      await process.ended;
      await operator.stop().catch(() => undefined);
    }
  })();
  return async () => {
    isOver = true;
    life?.kill();
    await living;
  };
}

/** Kills the operator, and waits for the next one. */
async function kill(): Promise<void> {
  const before = lives;
  life?.kill();
  await eventually(async () => lives > before);
}

const run = (name: string) => cluster.client.getOrUndefined<JobRun>(jobRunResource, ref(name));
const row = (id: string) => findJobRun(ledger, { organizationId: "alpha", projectId, id });
const begun = (name: string) => player.begun.filter((one) => one === name).length;

async function request(suffix: string): Promise<string> {
  const now = new Date();
  const name = jobRunName(projectId, now, suffix);
  await cluster.client.create<JobRun>(jobRunResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "JobRun",
    metadata: ref(name),
    spec: {
      projectRef: { name: projectId },
      trigger: "manual",
      scheduledAt: now.toISOString(),
      command: ["migrate"],
    },
  });
  return name;
}

async function charges(): Promise<string[]> {
  const { rows } = await sql<{ key: string }>`select key from charges order by key`.execute(ledger);
  return rows.map(({ key }) => key);
}

// Shows: docs/applications.md#one-off-runs: it begins once and is charged once
test("each run begins once and is charged once, though every write is some operator's last", async () => {
  await cluster.client.create<Project>(projectResource, exampleProject(ref(), { image }));
  await eventually(() => exists(cluster.client, resources.deployments, ref()));
  await makePod(cluster.client, ref(), serving(image.url, digest));
  await whileServed(cluster.client, ref(), async () => {
    const live = await cluster.client.get<Project>(projectResource, ref());
    return live.status?.deployments?.[0]?.status === "succeeded";
  });
  const before = lives;

  const first = await request("aa");
  await eventually(async () => (await run(first))?.status?.phase === "running");
  for (let kills = 0; kills < 3; kills += 1) {
    await kill();
  }
  expect(begun(first)).toBe(1);
  player.end = (_, of) => (of === first ? { exitCode: 0 } : undefined);
  await eventually(async () => (await run(first))?.status?.chargedAt);
  expect(await row(first)).toMatchObject({ status: "succeeded", billed_minutes: 1 });

  // Cancelled while it is being started: it never was, or it was stopped.
  const second = await request("bb");
  await cluster.client.patch(jobRunResource, ref(second), {
    spec: { cancelRequestedAt: new Date().toISOString() },
  });
  await eventually(async () => (await run(second))?.status?.phase === "cancelled");

  const third = await request("cc");
  await eventually(async () => begun(third) === 1);
  await cluster.client.patch(jobRunResource, ref(third), {
    spec: { cancelRequestedAt: new Date().toISOString() },
  });
  await eventually(async () => (await run(third))?.status?.chargedAt);
  expect(await row(third)).toMatchObject({ status: "cancelled" });

  await eventually(async () => (await player.jobs(projectId)).length === 0);
  expect(begun(first)).toBe(1);
  expect(begun(second)).toBeLessThanOrEqual(1);
  expect(begun(third)).toBe(1);
  const wasCharged = (await run(second))?.status?.chargedAt === undefined ? [] : [second];
  expect(await charges()).toEqual([first, ...wasCharged, third].sort());
  expect(lives - before).toBeGreaterThan(12);
}, 300_000);

import type { V1NetworkPolicy } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addresses } from "../../hack/cluster/addresses.ts";
import { startS3, type TestS3 } from "../kit/servers/s3.ts";
import { apiClient, deleteProjects, uniqueName } from "./support/api.ts";
import {
  askForBackup,
  deleteBackup,
  listBackups,
  podsOfBackup,
  restore,
  untilBackup,
} from "./support/backups.ts";
import { cluster, exec } from "./support/cluster.ts";
import { createDatabase, type DatabaseProject, databaseProject, untilReady } from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { acquireExclusive } from "./support/exclusive.ts";
import { replaceLeader, systemNamespace } from "./support/operator.ts";
import { connectPostgresql, untilBlocked } from "./support/postgresql.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { withValues } from "./support/values.ts";

/** Backups in a bucket of a real S3 server, which checks signatures, on the node's own address, with an authority of its own. */

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const secret = { namespace: systemNamespace, name: uniqueName("e2e-backups-s3") };
const made: string[] = [];
const undo: (() => unknown)[] = [];
let s3: TestS3;
let source: DatabaseProject;
let probers: string[] = [];
let release: (() => void) | undefined;

beforeAll(async () => {
  s3 = await startS3({ host: addresses.node, tls: true });
  undo.unshift(() => s3.stop());
  const { accessKeyId, secretAccessKey } = s3;
  await cluster.core.createNamespacedSecret({
    namespace: secret.namespace,
    body: { metadata: { name: secret.name }, stringData: { accessKeyId, secretAccessKey } },
  });
  undo.unshift(() => cluster.core.deleteNamespacedSecret(secret));
  const policy = { namespace, name: "slipway-backups" };
  undo.unshift(() => cluster.networking.deleteNamespacedNetworkPolicy(policy).catch(() => undefined));
  const s3Values = {
    endpoint: s3.endpoint,
    bucket: s3.bucket,
    prefix: "e2e/",
    ca: s3.ca,
    existingSecret: secret.name,
    networkPolicy: { cidrs: [`${s3.host}/32`], port: s3.port },
  };
  // From the first change on, backups of other files would go into the bucket.
  const change = withValues({ backups: { store: "s3", s3: s3Values } }, async () => {
    release = await acquireExclusive("backups");
  });
  change.catch(() => undefined);
  undo.unshift(async () => (await change)());
  const body = databaseProject("db-basic", { type_project: "postgresql", version: "17" });
  source = await createDatabase(call, body);
  made.push(source.id);
  [probers] = await Promise.all([
    Promise.all([
      startProber(uniqueName("of-backup"), { "slipway.dev/backup": "prober" }),
      startProber(uniqueName("other"), { "slipway.dev/project": "prober" }),
    ]),
    change,
  ]);
  await untilReady(source);
}, 1_500_000);

afterAll(async () => {
  // While there is a bucket: nobody could remove what is in it later.
  const steps = [
    async () => {
      for (const { id } of source ? await listBackups(call, source.id) : []) {
        await deleteBackup(call, source.id, id);
      }
    },
    () => deleteProjects(call, made),
    ...undo,
  ];
  const errors: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      errors.push(error);
    }
  }
  release?.();
  expect(errors).toEqual([]);
}, 1_000_000);

/** The object of a backup. */
const keyOf = (id: string) => `e2e/${stack.organization}/${source.id}/${id}.dump`;

test("a PostgreSQL database is restored from a bucket, though the operator was killed in the middle of its backup", async () => {
  const client = await eventually(() => connectPostgresql(source));
  await client.query("CREATE TABLE kept (id int PRIMARY KEY, said text NOT NULL)");
  await client.query("INSERT INTO kept SELECT i, md5(i::text) FROM generate_series(1, 20000) i");
  const SUM = "SELECT count(*)::int AS rows, md5(string_agg(said, ',' ORDER BY id)) AS all FROM kept";
  const before = (await client.query(SUM)).rows;

  // The dump waits for as long as somebody else has the table.
  await client.query("BEGIN; LOCK TABLE kept IN ACCESS EXCLUSIVE MODE");
  const id = await askForBackup(call, source.id);
  await untilBlocked(client);
  await replaceLeader();
  expect(await podsOfBackup(id, namespace)).toHaveLength(1);
  expect(await s3.objects()).toEqual([]);
  await client.query("ROLLBACK");
  await client.end();

  const backup = await untilBackup(call, source.id, id);
  expect(backup.contents).toEqual({ tables: 1, rows: 20_000, keys: null });
  expect(await listBackups(call, source.id)).toHaveLength(1);
  expect(await s3.objects()).toEqual([keyOf(id)]);
  expect(await s3.unfinished()).toEqual([]);
  await eventually(async () => expect(await podsOfBackup(id, namespace)).toEqual([]));

  const restored = await restore(call, source.id, id, uniqueName("restored"));
  made.push(restored.id);
  const again = await eventually(() => connectPostgresql(restored));
  expect((await again.query(SUM)).rows).toEqual(before);
  await again.end();

  await deleteBackup(call, source.id, id);
  expect(await s3.objects()).toEqual([]);
}, 400_000);

test("pods of backups reach the bucket's server and nothing else of the node, others not even that", async () => {
  const [backup = "", other = ""] = probers;
  const name = "slipway-backups";
  const policy = (await cluster.networking.readNamespacedNetworkPolicy({
    namespace,
    name,
  })) as V1NetworkPolicy;
  expect(policy.spec?.egress).toEqual([
    { to: [{ ipBlock: { cidr: `${s3.host}/32` } }], ports: [{ port: s3.port, protocol: "TCP" }] },
  ]);
  await eventually(async () => expect(await connects(backup, s3.port)).toBe(true));
  const others = [connects(backup, 6443), connects(backup, 10_250), connects(other, s3.port)];
  expect(await Promise.all(others)).toEqual([false, false, false]);
}, 240_000);

/** A pod that only waits, until the end of this file. */
async function startProber(name: string, labels: Record<string, string>): Promise<string> {
  undo.unshift(() => cluster.core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 }));
  await cluster.core.createNamespacedPod({
    namespace,
    body: {
      metadata: { name, labels },
      spec: {
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 0,
        containers: [{ name: "prober", image: stack.imageJob, command: ["/bin/sh", "-c", "sleep 3600"] }],
      },
    },
  });
  await eventually(async () => {
    const pod = await cluster.core.readNamespacedPod({ namespace, name });
    expect(pod.status?.phase).toBe("Running");
  });
  return name;
}

/** Whether a pod gets a connection to the node. */
async function connects(pod: string, port: number): Promise<boolean> {
  const script = `nc -w 3 ${addresses.node} ${port} </dev/null`;
  return (await exec(namespace, pod, "prober", ["/bin/sh", "-c", script])).exitCode === 0;
}

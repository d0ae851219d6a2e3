import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { PLATFORM_BACKUP, PLATFORM_VERIFICATION, platformBackupKeys } from "@slipway/crds";
import { generateIdentity, identityToRecipient } from "age-encryption";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestApiserver } from "../../../hack/cluster/apiserver.ts";
import { root } from "../../../hack/lib/paths.ts";
import { acquireApiserver } from "../../../test/kit/clusters/shared-apiserver.ts";
import { validFixtures } from "../../../test/kit/crds/fixtures.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import { newestTools, unprivilegedAccount } from "../../../test/kit/servers/postgresql.ts";
import { startS3, type TestS3 } from "../../../test/kit/servers/s3.ts";
import { encryptArchive } from "../archive/file.ts";
import { openLocation } from "../archive/location.ts";
import { restoredResources } from "../objects.ts";

/** The program of the chart's CronJobs with its sidecars' scripts: a real kube-apiserver, PostgreSQL, and S3 server. */

const namespace = "slipway-system";
const scratchNamespace = "slipway-restore-test";
const organization = "slipway-org-acme";
const undo: (() => unknown)[] = [];
let [api, client, ledger, s3, folder, variables]: [
  TestApiserver?,
  KubeClient?,
  TestJobLedger?,
  TestS3?,
  string?,
  Record<string, string>?,
] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-jobs-"));
  await chmod(folder, 0o755);
  undo.unshift(() => rm(folder ?? "", { recursive: true }));
  [api, ledger, s3] = await Promise.all([acquireApiserver(), startJobLedger(), startS3()]);
  undo.unshift(
    () => api?.stop(),
    () => ledger?.stop(),
    () => s3?.stop(),
  );
  client = KubeClient.fromConfig(loadKubeConfig({ file: api.kubeconfig }), { userAgent: "test" });
  undo.unshift(() => client?.close());
  const identity = await generateIdentity();
  await writeFile(join(folder, "identity"), `# of the platform\n${identity}\n`);
  variables = {
    KUBECONFIG: api.kubeconfig,
    SLIPWAY_NAMESPACE: namespace,
    SLIPWAY_PLATFORM_BACKUP_PLACE: `s3://${s3.bucket}/platform/`,
    SLIPWAY_PLATFORM_BACKUP_RECIPIENTS: await identityToRecipient(identity),
    SLIPWAY_PLATFORM_BACKUP_RETENTION_DAYS: "30",
    SLIPWAY_PLATFORM_BACKUP_KEEP_AT_LEAST: "7",
    SLIPWAY_PLATFORM_IDENTITY_FILE: join(folder, "identity"),
    SLIPWAY_PLATFORM_VERIFICATION_NAMESPACE: scratchNamespace,
    AWS_ENDPOINT_URL_S3: s3.endpoint,
    AWS_ACCESS_KEY_ID: s3.accessKeyId,
    AWS_SECRET_ACCESS_KEY: s3.secretAccessKey,
  };
  Object.assign(process.env, variables);
  await populate();
}, 600_000);
afterAll(async () => {
  for (const step of undo) {
    await step();
  }
});

/** Every valid example of every kind that is backed up, in one organization; the chart's objects that jobs report to. */
async function populate(): Promise<void> {
  const kube = client as KubeClient;
  const labels = { "slipway.dev/organization": "acme", "slipway.dev/role": "organization" };
  await kube.create(resources.namespaces, { metadata: { name: organization, labels } });
  for (const name of [namespace, scratchNamespace]) {
    await kube.create(resources.namespaces, { metadata: { name } });
  }
  await kube.create(resources.configMaps, { metadata: { name: PLATFORM_BACKUP, namespace } });
  for (const name of [PLATFORM_BACKUP, PLATFORM_VERIFICATION]) {
    const containers = [{ name: "one", image: "one" }];
    const template = { spec: { restartPolicy: "Never", containers } };
    const spec = { schedule: "0 0 1 1 *", jobTemplate: { spec: { template } } };
    await kube.create(resources.cronJobs, { metadata: { name, namespace }, spec } as KubernetesObject);
  }
  const named = new Map(validFixtures().map(([, one]) => [`${one.kind} ${one.metadata.name}`, one]));
  for (const { status: _, ...fixture } of named.values()) {
    const resource = restoredResources.find(({ kind }) => kind === fixture.kind);
    if (resource) {
      const place = resource.namespaced ? { namespace: organization } : {};
      await kube.create(resource, {
        ...fixture,
        metadata: { ...fixture.metadata, ...place },
      } as KubernetesObject);
    }
  }
  const spec = { type: "NodePort", ports: [{ port: 5_432 }] };
  const service = { metadata: { name: "db", namespace: organization }, spec };
  await kube.create(resources.services, service as KubernetesObject);
}

/** A script of the chart in the folder that both containers have, as its container runs it. */
async function sidecar(
  script: string,
  env: Record<string, string> = {},
): Promise<{ dir: string; end: () => Promise<void> }> {
  const account = unprivilegedAccount();
  const dir = await mkdtemp(join(folder ?? "", "shared-"));
  const data = `${dir}.data`;
  await Promise.all([chmod(dir, 0o777), mkdir(data)]);
  if (account) {
    await chown(data, account.uid, account.gid);
  }
  const child: ChildProcess = spawn(
    "sh",
    [join(root, "charts/slipway/files/recovery", script), dir, join(data, "pgdata")],
    { env: { PATH: `${newestTools()}:${process.env.PATH}`, ...env }, stdio: "ignore", cwd: data, ...account },
  );
  const end = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
  };
  return { dir, end };
}

/** @returns exit code, and what was written to the standard error */
async function job(name: string, dir: string): Promise<{ code: number; errors: string }> {
  const child = spawn("node", ["recovery/src/main.ts", name], {
    cwd: root,
    env: { ...process.env, ...variables, SLIPWAY_RECOVERY_DIR: dir },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const [code] = (await once(child, "close")) as [number];
  return { code, errors };
}

const backup = async (env: Record<string, string> = { SLIPWAY_LEDGER_URL: ledger?.postgres.url ?? "" }) => {
  const { dir, end } = await sidecar("dump-ledger.sh", env);
  try {
    return await job("backup", dir);
  } finally {
    await end();
  }
};
const verify = async (env: Record<string, string> = {}) => {
  const { dir, end } = await sidecar("scratch-ledger.sh", env);
  try {
    return await job("verify", dir);
  } finally {
    await end();
  }
};

type ConfigMap = KubernetesObject & { data?: Record<string, string> };
async function outcome(key: keyof typeof platformBackupKeys) {
  const ref = { namespace, name: PLATFORM_BACKUP };
  const { data } = await (client as KubeClient).get<ConfigMap>(resources.configMaps, ref);
  const text = data?.[platformBackupKeys[key]];
  return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>);
}
type Event = KubernetesObject & { reason?: string; note?: string; regarding?: { name?: string } };
const events = async () => {
  const { items } = await (client as KubeClient).list<Event>(resources.events, { namespace });
  return items.map(({ reason, regarding }) => `${regarding?.name} ${reason}`);
};
const fileOf = async (name: unknown) => {
  const { storage } = await openLocation(variables?.SLIPWAY_PLATFORM_BACKUP_PLACE ?? "", process.env);
  return { storage, name: String(name) };
};

test("a backup is stored, and the newest one is restored for a test, which leaves nothing", async () => {
  const stored = await backup();
  expect(stored).toMatchObject({ code: 0 });
  const { name, objects } = (await outcome("stored")) ?? {};
  expect(await s3?.objects()).toEqual([`platform/${name}`]);
  expect(await outcome("notStored")).toBeUndefined();

  expect(await verify()).toMatchObject({ code: 0 });
  const verified = await outcome("verified");
  expect(verified).toMatchObject({ name, objects });
  const rows = verified?.ledgerRows as Record<string, number>;
  expect(rows["public.kysely_migration"]).toBeGreaterThan(10);
  expect(await events()).toEqual(
    expect.arrayContaining([
      `${PLATFORM_BACKUP} BackupSucceeded`,
      `${PLATFORM_VERIFICATION} VerificationSucceeded`,
    ]),
  );
  for (const resource of restoredResources.filter(({ namespaced }) => namespaced)) {
    const { items } = await (client as KubeClient).list(resource, { namespace: scratchNamespace });
    expect(items).toEqual([]);
  }
}, 120_000);

test("a backup whose ledger does not answer is none, and the report says why", async () => {
  const before = await s3?.objects();
  const failed = await backup({ SLIPWAY_LEDGER_URL: "postgresql://slipway@127.0.0.1:9/slipway" });
  expect(failed).toMatchObject({
    code: 1,
    errors: expect.stringMatching(/pg_dump failed with 1: .*refused/),
  });
  expect(await s3?.objects()).toEqual(before);
  expect(await s3?.unfinished()).toEqual([]);
  expect(await outcome("notStored")).toMatchObject({ message: expect.stringContaining("refused") });
  expect(await events()).toContain(`${PLATFORM_BACKUP} BackupFailed`);
}, 120_000);

test("a test whose server does not start says so", async () => {
  // Its programs are not there.
  const { code, errors } = await verify({ PATH: "/usr/bin:/bin:/nowhere" });
  expect(errors).toMatch(/initdb.* not found.*initdb failed/s);
  expect(code).toBe(1);
}, 120_000);

test("a test fails for an object of which a byte differs", async () => {
  const { storage, name } = await fileOf((await outcome("stored"))?.name);
  const bytes = await readAll(storage.read(name));
  const changed = Buffer.from(bytes);
  const at = Math.floor(bytes.length / 2);
  changed[at] = (changed[at] ?? 0) ^ 1;
  await replace(changed);
  expect(await verify()).toMatchObject({ code: 1 });
  expect(await outcome("notVerified")).toMatchObject({ message: `${name} cannot be read: invalid tag` });
  expect(await events()).toContain(`${PLATFORM_VERIFICATION} VerificationFailed`);
  await replace(bytes);

  async function replace(content: Buffer): Promise<void> {
    await storage.delete(name);
    await storage.write(name, [content] as unknown as AsyncIterable<Uint8Array>);
  }
}, 120_000);

test("a test fails for another archive in place of the one that was stored, though it can be decrypted", async () => {
  const { storage, name } = await fileOf((await outcome("stored"))?.name);
  async function* records() {
    yield {
      type: "header",
      format: 1,
      id: crypto.randomUUID(),
      createdAt: new Date().toISOString(),
    } as const;
    yield { type: "end", objects: 0, ledgerBytes: 0, ledgerRows: {} } as const;
  }
  await storage.delete(name);
  const recipients = [variables?.SLIPWAY_PLATFORM_BACKUP_RECIPIENTS ?? ""];
  await storage.write(name, encryptArchive(recipients, records()));
  expect(await verify()).toMatchObject({ code: 1, errors: expect.stringContaining("checksum differs") });
}, 120_000);

const notes = "CREATE TABLE public.notes (id int);\nCOPY public.notes (id) FROM stdin;\n1\n\\.\n";
const copy = "COPY public.missing (id) FROM stdin;\n1\n\\.\n";
const project = {
  apiVersion: "slipway.dev/v1alpha1",
  kind: "Project",
  metadata: { name: "p1", namespace: organization, uid: crypto.randomUUID() },
  spec: { type: "of another release" },
} as KubernetesObject;

test.for<
  [what: string, archive: { objects?: KubernetesObject[]; sql?: string; rows?: object }, error: RegExp]
>([
  ["whose SQL does not load", { sql: copy }, /psql failed with 3: .*missing/s],
  ["whose ledger lacks rows", { sql: notes, rows: { "public.notes": 2 } }, /public\.notes has 1 rows of 2/],
  ["of an object that the apiserver refuses", { objects: [project] }, /refuses 1 objects, .*spec\.type/],
])(
  "a test fails for an archive %s",
  { timeout: 120_000 },
  async ([, { objects = [], sql = "", rows = {} }, error]) => {
    const { storage } = await fileOf("");
    async function* records() {
      const [id, createdAt] = [crypto.randomUUID(), new Date().toISOString()];
      yield { type: "header", format: 1, id, createdAt } as const;
      for (const object of objects) {
        yield { type: "object", object } as const;
      }
      yield { type: "ledger", sql } as const;
      const ledgerBytes = Buffer.byteLength(sql);
      const ledgerRows = rows as Record<string, number>;
      yield { type: "end", objects: objects.length, ledgerBytes, ledgerRows } as const;
    }
    const recipients = [variables?.SLIPWAY_PLATFORM_BACKUP_RECIPIENTS ?? ""];
    const name = `platform-29991231T000000Z-${crypto.randomUUID().slice(0, 8)}.age`;
    await storage.write(name, encryptArchive(recipients, records()));
    const { code, errors } = await verify();
    await storage.delete(name);
    expect(errors).toMatch(error);
    expect(code).toBe(1);
  },
);

async function readAll(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

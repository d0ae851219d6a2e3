import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { V1Job } from "@kubernetes/client-node";
import { PLATFORM_BACKUP, PLATFORM_VERIFICATION, platformBackupKeys } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run } from "../../hack/lib/exec.ts";
import { root, toolDir } from "../../hack/lib/paths.ts";
import { openLocation } from "../../recovery/src/archive/location.ts";
import { startS3, type TestS3 } from "../kit/servers/s3.ts";
import { apiClient, createProject, deleteProjects, uniqueName } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { jobProject } from "./support/jobs.ts";
import { systemNamespace as namespace } from "./support/operator.ts";
import { stack } from "./support/stack.ts";
import { withValues } from "./support/values.ts";

/**
 * Jobs of the chart's CronJobs that back up the platform, and restore its backup for a test: on a real S3 server with an authority of its own, on
 * this machine.
 */

const call = apiClient();
const secrets = [uniqueName("e2e-platform-s3"), uniqueName("e2e-platform-identity")] as const;
const jobs: string[] = [];
let [folder, project, place, recipient]: string[] = [];
let [s3, restore]: [TestS3?, (() => Promise<void>)?] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-e2e-recovery-"));
  s3 = await startS3({ host: stack.clientAddress, tls: true });
  const { accessKeyId, secretAccessKey, endpoint, bucket, ca, host, port } = s3;
  place = `s3://${bucket}/platform/`;
  await writeFile(join(folder, "ca.crt"), ca);
  // The tests' own commands reach the bucket as a person would.
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_CA_BUNDLE: join(folder, "ca.crt"),
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
  });
  const key = await slipway("key", "--to", join(folder, "identity"));
  ({ recipient } = JSON.parse(key) as { recipient: string });
  const identity = await run("cat", [join(folder, "identity")]);
  for (const [name, stringData] of [
    [secrets[0], { accessKeyId, secretAccessKey }],
    [secrets[1], { identity }],
  ] as const) {
    await cluster.core.createNamespacedSecret({ namespace, body: { metadata: { name }, stringData } });
  }
  project = (await createProject(call, jobProject({ name: uniqueName("recovery") }))).project_id;
  restore = await withValues({
    platformBackup: {
      recipients: [recipient],
      s3: {
        endpoint,
        bucket,
        ca,
        existingSecret: secrets[0],
        networkPolicy: { cidrs: [`${host}/32`], port },
      },
      verify: { schedule: "0 0 1 1 *", identitySecret: { name: secrets[1] } },
    },
  });
}, 300_000);

afterAll(async () => {
  const steps = [
    () => Promise.all([...jobs.map(deleteJob), restore?.()]),
    ...secrets.map((name) => () => cluster.core.deleteNamespacedSecret({ namespace, name })),
    () => (project ? deleteProjects(call, [project]) : undefined),
    () => s3?.stop(),
    () => rm(folder ?? "", { recursive: true }),
  ];
  const errors: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      errors.push(error);
    }
  }
  expect(errors).toEqual([]);
}, 120_000);

const slipway = (...args: string[]) =>
  run("node", ["hack/slipway.ts", "admin", "platform", ...args, "--json"], { cwd: root });
const kubectl = (...args: string[]) =>
  run(join(toolDir, "kubectl"), ["--kubeconfig", stack.kubeconfig, "-n", namespace, ...args]);
/** One whose CronJob is gone with its values may be gone, too. */
const deleteJob = (name: string) =>
  kubectl("delete", "job", name, "--cascade=foreground", "--ignore-not-found");

/** Runs a CronJob's job now. @returns how it, or its first pod, has ended */
async function runNow(cronJob: string): Promise<"succeeded" | "failed"> {
  const name = uniqueName("e2e-platform");
  await kubectl("create", "job", name, `--from=cronjob/${cronJob}`);
  jobs.push(name);
  return eventually(
    async () => {
      const { status } = JSON.parse(await kubectl("get", "job", name, "-o", "json")) as V1Job;
      if (!status?.succeeded && !status?.failed) {
        throw new Error(`${name} has not ended: ${JSON.stringify(status)}`);
      }
      return status.succeeded ? "succeeded" : "failed";
    },
    { within: 60_000 },
  );
}

async function outcome(key: keyof typeof platformBackupKeys) {
  const { data } = await cluster.core.readNamespacedConfigMap({ namespace, name: PLATFORM_BACKUP });
  return JSON.parse(data?.[platformBackupKeys[key]] ?? "{}") as {
    name?: string;
    message?: string;
    ledgerRows?: Record<string, number>;
  };
}
async function reasonsOf(cronJob: string): Promise<string[]> {
  const fieldSelector = `involvedObject.name=${cronJob}`;
  const { items } = await cluster.core.listNamespacedEvent({ namespace, fieldSelector });
  return items.map(({ reason }) => reason ?? "");
}

test("a backup that the chart's job has stored is read by `show`, restored by the weekly test, and missed by it when a byte differs", async () => {
  expect(await runNow(PLATFORM_BACKUP)).toBe("succeeded");
  const { name = "" } = await outcome("stored");
  expect(await s3?.objects()).toEqual([`platform/${name}`]);
  const { backups } = JSON.parse(await slipway("backups", "--in", place ?? "")) as { backups: object[] };
  expect(backups).toEqual([expect.objectContaining({ name })]);
  const identity = join(folder ?? "", "identity");
  const shown = JSON.parse(await slipway("show", "--from", place ?? "", "--identity", identity)) as {
    name: string;
    objects: Record<string, number>;
    ledgerRows: Record<string, number>;
  };
  expect(shown.name).toBe(name);
  expect(shown.objects.Project).toBeGreaterThan(0);
  expect(shown.objects.Secret).toBeGreaterThan(0);
  expect(shown.ledgerRows["public.organizations"]).toBeGreaterThan(0);

  expect(await runNow(PLATFORM_VERIFICATION)).toBe("succeeded");
  expect(await outcome("verified")).toMatchObject({ name, ledgerRows: shown.ledgerRows });
  expect(await reasonsOf(PLATFORM_BACKUP)).toContain("BackupSucceeded");
  expect(await reasonsOf(PLATFORM_VERIFICATION)).toContain("VerificationSucceeded");

  await tamper(name);
  expect(await runNow(PLATFORM_VERIFICATION)).toBe("failed");
  expect(await outcome("notVerified")).toEqual(
    expect.objectContaining({ message: `${name} cannot be read: invalid tag` }),
  );
  expect(await reasonsOf(PLATFORM_VERIFICATION)).toContain("VerificationFailed");

  // By hand, to the same place: the next one to be restored.
  const written = JSON.parse(
    await slipway("backup", "--to", place ?? "", "--recipient", recipient ?? "", "--retention-days", "30"),
  ) as { name: string; removed: string[]; ledgerRows: Record<string, number> };
  expect(written.removed).toEqual([]);
  const again = JSON.parse(await slipway("show", "--from", place ?? "", "--identity", identity)) as object;
  expect(again).toMatchObject({ name: written.name, ledgerRows: written.ledgerRows });
  expect(written.name > name).toBe(true);
  const restored = slipway("restore", "--from", place ?? "", "--identity", identity);
  await expect(restored).rejects.toThrow("this installation is in use");
}, 240_000);

async function tamper(name: string): Promise<void> {
  const { storage } = await openLocation(place ?? "", process.env);
  const chunks: Uint8Array[] = [];
  for await (const chunk of storage.read(name)) {
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks);
  const at = Math.floor(bytes.length / 2);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  await storage.delete(name);
  async function* changed() {
    yield bytes;
  }
  await storage.write(name, changed());
}

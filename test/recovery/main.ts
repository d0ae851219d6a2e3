/**
 * `node test/recovery/main.ts`: users fill the stack, it is backed up, destroyed with its volumes, made again on an empty cluster and
 * restored, after the restore was killed a few times; prints what came back, and when. What the stack had before is lost. Leaves
 * `.slipway/logs/recovery/report.md` and `.json`; exits 1 when anything that was to come back is missing. Databases are backed up to an S3
 * server on the node's own address.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stringify } from "yaml";
import { addresses } from "../../hack/cluster/addresses.ts";
import { run } from "../../hack/lib/exec.ts";
import { root } from "../../hack/lib/paths.ts";
import { writeReport } from "../../hack/testing/reports.ts";
import { testedCommit } from "../../hack/testing/summary.ts";
import { startS3, type TestS3 } from "../kit/servers/s3.ts";
import { faults, markdown, type Results } from "./report.ts";

const log = (line: string) => console.log(`recovery: ${line}`);
/** Apart from the stack, whose folder is destroyed with it. */
const folder = await mkdtemp(join(tmpdir(), "slipway-recovery-"));
const [archive, key] = [join(folder, "platform.age"), join(folder, "key")];

const steps: { name: string; seconds: number }[] = [];
async function timed<T>(step: string, work: () => Promise<T>): Promise<T> {
  log(step);
  const began = performance.now();
  const result = await work();
  steps.push({ name: step, seconds: (performance.now() - began) / 1_000 });
  return result;
}

/** Seconds after which a restore is killed, and begun again: while processes stop, objects are created, and processes start. */
const KILLS = [3, 7, 9];

/** Begins a restore and kills it. */
async function restoreUntilKilled(after: number): Promise<void> {
  const args = ["hack/slipway.ts", "admin", "platform", "restore", "--from", archive, "--identity", key];
  const child = spawn("node", args, { cwd: root, stdio: "ignore" });
  const ended = once(child, "exit");
  await sleep(after * 1_000);
  child.kill("SIGKILL");
  await ended;
}

const slipway = (...args: string[]) =>
  run("npm", ["run", "--silent", "slipway", "--", "admin", "platform", ...args, "--json"], { cwd: root });

const install = (values: Record<string, string> = {}) =>
  run("bash", ["hack/up.sh"], { cwd: root, env: { SLIPWAY_RATE_LIMIT_SCALE: "100", ...values } });

/** Installs with backups to the store. */
async function installWith(s3: TestS3): Promise<void> {
  const { endpoint, bucket, ca, host, port } = s3;
  const networkPolicy = { cidrs: [`${host}/32`], port };
  const store = { endpoint, bucket, prefix: "recovery/", ca, existingSecret: "platform-s3", networkPolicy };
  const values = join(folder, "values.yaml");
  await writeFile(values, stringify({ backups: { store: "s3", s3: store } }));
  // The Secret that the values name is created as soon as its namespace is there.
  const secret = setInterval(() => void createSecret(s3).then((is) => is && clearInterval(secret)), 2_000);
  try {
    await install({ SLIPWAY_VALUES: values });
  } finally {
    clearInterval(secret);
  }
}

/** @returns whether it is there */
async function createSecret({ accessKeyId, secretAccessKey }: TestS3): Promise<boolean> {
  const body = stringify({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "platform-s3", namespace: "slipway-system" },
    stringData: { accessKeyId, secretAccessKey },
  });
  const file = join(folder, "secret.yaml");
  await writeFile(file, body, { mode: 0o600 });
  const kubeconfig = join(root, ".slipway/kubeconfig");
  return run(join(root, ".slipway/bin/kubectl"), ["--kubeconfig", kubeconfig, "apply", "-f", file]).then(
    () => true,
    () => false,
  );
}

// Nothing of before is in the backup; the node has its address from then on.
await run("bash", ["hack/down.sh", "--purge"], { cwd: root });
await timed("first installation", () => install());
const s3 = await startS3({ host: addresses.node, tls: true });
try {
  await installWith(s3);
  // They read the stack's file when they are imported.
  const { populate } = await import("./population.ts");
  const { check, history } = await import("./check.ts");
  const { stack } = await import("../e2e/support/stack.ts");
  const people = await timed("projects of users", () => populate(log));
  const { recipient } = JSON.parse(await slipway("key", "--to", key)) as { recipient: string };
  const before = await history(people);
  const backup = JSON.parse(
    await timed("backup", () => slipway("backup", "--to", archive, "--recipient", recipient)),
  ) as Results["backup"];
  const authority = await readFile(stack.databaseCa);
  await timed("destruction", () => run("bash", ["hack/down.sh", "--purge"], { cwd: root }));
  await timed("installation on an empty cluster", () => installWith(s3));
  const began = performance.now();
  for (const after of KILLS) {
    await timed(`restore, killed after ${after} s`, () => restoreUntilKilled(after));
  }
  const restored = JSON.parse(
    await timed("restore", () => slipway("restore", "--from", archive, "--identity", key)),
  ) as { emptyDatabases: string[] };
  // Clients have kept theirs.
  await writeFile(stack.databaseCa, authority);
  const lines = await timed("until all is back", () => check(people, before, began));
  const results: Results = {
    commit: await testedCommit(),
    lines,
    steps,
    backup,
    emptyDatabases: { found: restored.emptyDatabases, expected: [people.emptyDatabase] },
  };
  await writeReport("recovery", results, markdown(results));
  process.exitCode = faults(results).length > 0 ? 1 : 0;
} finally {
  await s3.stop();
  if (process.exitCode === 0) {
    await rm(folder, { recursive: true });
  } else {
    log(`the backup and its key stay in ${folder}`);
  }
}

/** The embedded ledger as SQL: `pg_dump` and `psql` run in its own pod, so that both are of its version. */

import {
  type ExecResult,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import type { Installation } from "./installation.ts";
import { wholeLines } from "./sql-pieces.ts";

const CONTAINER = "postgres";
const SELECTOR = "app.kubernetes.io/name=slipway-ledger";
/** The password is read in the pod: what a command is given, every process of the node can list. */
const CONNECT =
  'export PGPASSWORD="$(cat /etc/slipway/ledger/password)" PGHOST=127.0.0.1 PGUSER=slipway PGDATABASE=ledger';
/** Milliseconds that all of it may take. */
const TIMEOUT_MS = 3_600_000;

/** Gives the whole ledger as of one moment, in pieces of whole lines. */
export type LedgerDump = () => AsyncIterable<string>;

/** The whole ledger as of one moment, in pieces of whole lines. @throws Error with what `pg_dump` wrote, when it fails */
export async function* dumpLedger(installation: Installation): AsyncGenerator<string> {
  const pieces = new TransformStream<Buffer, Buffer>();
  const writer = pieces.writable.getWriter();
  const ended = run(installation, "exec pg_dump --no-owner --no-privileges", {
    onStdout: (chunk) => writer.write(chunk),
  }).then(
    () => writer.close(),
    (error) => writer.abort(error),
  );
  yield* wholeLines(pieces.readable);
  await ended;
}

/**
 * Replaces all that the ledger has, in one transaction.
 * @param sql as {@link dumpLedger} gives it
 */
export async function loadLedger(installation: Installation, sql: AsyncIterable<string>): Promise<void> {
  async function* stdin() {
    yield Buffer.from("drop schema public cascade;\ncreate schema public;\n");
    for await (const piece of sql) {
      yield Buffer.from(piece);
    }
  }
  await run(
    installation,
    "exec psql --quiet --no-psqlrc --single-transaction --set ON_ERROR_STOP=1 --file=- --output /dev/null",
    {
      stdin: stdin(),
    },
  );
}

/** Tables that have rows in a ledger which was used. Those of an earlier release lack some of them. */
const USED_TABLES = [
  "deployments",
  "job_runs",
  "charges",
  "storage_hours",
  "plan_charges",
  "invoices",
  "credit_notes",
];

/** Rows of tables that a ledger which was used has. */
export async function rowsOfLedger(installation: Installation): Promise<number> {
  const names = USED_TABLES.map((table) => `'${table}'`).join(", ");
  const { stdout } = await run(
    installation,
    "exec psql --no-psqlrc --tuples-only --no-align --set ON_ERROR_STOP=1",
    {
      stdin: `select format('select count(*) from %I', relname) from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname in (${names}) \\gexec\n`,
    },
  );
  return stdout
    .trim()
    .split("\n")
    .reduce((sum, count) => sum + Number(count), 0);
}

/**
 * The pod whose ledger takes writes: of two instances the one that Patroni has labelled. Pure.
 * @param pods of the ledger
 * @throws Error when there is none
 */
export function primaryPod(pods: readonly KubernetesObject[]): string {
  if (pods.length === 0) {
    throw new Error(
      "there is no pod of the ledger: an external one (ledger.url) is backed up by its provider's means",
    );
  }
  const roleOf = ({ metadata }: KubernetesObject) => metadata?.labels?.[labels.role];
  // A single instance has no role.
  const primary =
    pods.find((pod) => roleOf(pod) === "primary") ?? pods.find((pod) => pods.length === 1 && !roleOf(pod));
  if (!primary?.metadata?.name) {
    throw new Error("no instance of the ledger is the primary now");
  }
  return primary.metadata.name;
}

async function run(
  { client, namespace }: Installation,
  command: string,
  streams: Pick<Parameters<KubeClient["podExec"]>[1], "stdin" | "onStdout">,
): Promise<ExecResult> {
  const name = primaryPod(await client.listAll(resources.pods, { namespace, labelSelector: SELECTOR }));
  const result = await client.podExec(
    { namespace, name },
    {
      container: CONTAINER,
      command: ["sh", "-c", `${CONNECT}; ${command}`],
      timeoutMs: TIMEOUT_MS,
      ...streams,
    },
  );
  if (result.exitCode !== 0) {
    throw new Error(`${command.split(" ")[1]} in ${name} failed: ${result.stderr.trim().slice(0, 1_000)}`);
  }
  return result;
}

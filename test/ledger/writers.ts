/** Who writes to the ledger meanwhile: its own package, `/v1`, and one session at each instance past the Service. */

import { beginAudits, connectLedger, type Ledger } from "@slipway/ledger";
import { sql } from "kysely";
import pg from "pg";
import { systemNamespace } from "../../hack/stack/chart.ts";
import { type Acknowledged, Writer, type WriteSession } from "../e2e/support/acknowledged.ts";
import { apiClient } from "../e2e/support/api.ts";
import { cluster } from "../e2e/support/cluster.ts";
import { rowsOver } from "../e2e/support/postgresql.ts";

const OPERATION = "test-of-the-ledger";
/** The operation of `/v1` by its name in the audit log. */
const RENAME = "updateProjectName";

/** The ledger's URL, by an address that this machine reaches. @param host in place of the Service's own address */
export async function ledgerUrl(host?: string): Promise<URL> {
  const where = { namespace: systemNamespace, name: "slipway-ledger" };
  const secret = await cluster.core.readNamespacedSecret(where);
  const url = new URL(Buffer.from(secret.data?.url ?? "", "base64").toString("utf8"));
  url.hostname = host ?? (await cluster.core.readNamespacedService(where)).spec?.clusterIP ?? "";
  return url;
}

/** Writes rows of the audit log as the API server does, over one pool for all of the time. */
export function packageWriter(ledger: Ledger): Writer {
  return new Writer(async () => ({
    async insert(id) {
      const intent = { organizationId: null, actor: "admin", projectId: String(id), sourceIp: null };
      await beginAudits(ledger, [{ ...intent, operation: OPERATION }]);
      return { by: "service", term: 0 };
    },
    close: async () => undefined,
  }));
}

/** Ids of the rows that it has written. */
export async function packageRows(ledger: Ledger): Promise<Set<number>> {
  const { rows } = await sql<{ id: string }>`
    select project_id as id from audit_log where operation = ${OPERATION}`.execute(ledger);
  return new Set(rows.map(({ id }) => Number(id)));
}

/** Renames a project by `/v1` again and again: each call reads the ledger for its key, and writes there before it does anything. */
export function apiWriter(project: string): Writer {
  const call = apiClient();
  return new Writer(
    async () => ({
      async insert(id) {
        const { status, body } = await call("PATCH", `/v1/project/${project}/name`, { name: `row-${id}` });
        if (status !== 200) {
          throw new Error(`${status} ${body.code}`);
        }
        return { by: "api", term: 0 };
      },
      close: async () => undefined,
    }),
    250,
  );
}

/** Calls of the audit log that renamed it. */
export async function auditedRenames(ledger: Ledger, project: string): Promise<number> {
  const { rows } = await sql<{ calls: number }>`select count(*)::int as calls from audit_log
    where project_id = ${project} and operation = ${RENAME}`.execute(ledger);
  return rows[0]?.calls ?? 0;
}

/** A database of its own beside the ledger's, in which sessions past the Service write. */
const SEPARATE = "postgres";

async function separate(host?: string): Promise<pg.Client> {
  const url = await ledgerUrl(host);
  url.pathname = `/${SEPARATE}`;
  const client = new pg.Client({
    connectionString: url.href,
    connectionTimeoutMillis: 3_000,
    query_timeout: 60_000,
  });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** Runs a statement at the primary. */
export async function atPrimary<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
  const client = await separate();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

/** Writes at one instance past the Service: a second primary would be seen. */
export function memberWriter(pod: string): Writer {
  return new Writer(async (): Promise<WriteSession> => {
    const { status } = await cluster.core.readNamespacedPod({ namespace: systemNamespace, name: pod });
    return rowsOver(await separate(status?.podIP ?? "127.0.0.1"), pod);
  }, 100);
}

export const openLedger = async (): Promise<Ledger> =>
  connectLedger({ url: (await ledgerUrl()).href, applicationName: "test" });

/** Those that were acknowledged from a moment on, with the last one before it: from there on nothing was. */
export function since(acknowledged: readonly Acknowledged[], moment: number): Acknowledged[] {
  const last = acknowledged.findLastIndex(({ at }) => at < moment);
  return acknowledged.slice(Math.max(0, last));
}

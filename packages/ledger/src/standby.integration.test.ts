import { sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { connectLedger, countSynchronousStandbys, type Ledger } from "./index.ts";

/** A standby of the ledger takes connections, too; one that a client reached before a failover must not be kept. */

let postgres: TestPostgres;
let ledger: Ledger;

beforeAll(async () => {
  postgres = await startPostgres();
  await execute("create table written (id int)");
});
afterAll(async () => {
  await ledger?.destroy();
  await postgres?.stop();
});

async function execute(statement: string): Promise<void> {
  const options = "-c default_transaction_read_only=off";
  const client = new pg.Client({ connectionString: postgres.url, options });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** The server as a standby is to its clients, for those that connect from now on. */
const asStandby = (isStandby: boolean) =>
  execute(`alter role slipway set default_transaction_read_only = ${isStandby ? "on" : "off"}`);

const connect = () => connectLedger({ url: postgres.url, applicationName: "test", maxConnections: 1 });

test("a server that takes no writes is refused, also for reads, and another is found with the next query", async () => {
  ledger = connect();
  await asStandby(true);
  await expect(sql`select 1`.execute(ledger)).rejects.toThrow("takes no writes");
  await expect(sql`select 1`.execute(ledger)).rejects.toThrow("takes no writes");
  await asStandby(false);
  await sql`insert into written values (1)`.execute(ledger);
  await ledger.destroy();
});

test("a connection whose server has become a standby is given up with the write that it refuses", async () => {
  ledger = connect();
  await sql`insert into written values (2)`.execute(ledger);
  // As of a session whose server is not the primary any more.
  await sql`set default_transaction_read_only = on`.execute(ledger);
  await expect(sql`insert into written values (3)`.execute(ledger)).rejects.toMatchObject({ code: "25006" });
  await sql`insert into written values (4)`.execute(ledger);
});

test("a single instance has no standby", async () => {
  expect(await countSynchronousStandbys(ledger)).toBe(0);
});

/** A ledger that was restored into a PostgreSQL server for a test. */

import { Client } from "pg";

/**
 * @param folder with the server's socket
 * @param expected rows by table
 * @returns how many rows there are in all
 * @throws Error that names the tables which have another number of rows
 */
export async function checkRows(folder: string, expected: Readonly<Record<string, number>>): Promise<number> {
  const client = new Client({ host: folder, user: "slipway", database: "ledger" });
  await client.connect();
  try {
    const wrong: string[] = [];
    let rows = 0;
    for (const [table, count] of Object.entries(expected)) {
      // Names have been checked: letters, digits and underscores.
      const { rows: found } = await client.query<{ count: string }>(`select count(*) from ${table}`);
      const restored = Number(found[0]?.count);
      rows += restored;
      if (restored !== count) {
        wrong.push(`${table} has ${restored} rows of ${count}`);
      }
    }
    if (wrong.length > 0) {
      throw new Error(`the ledger is not what was backed up: ${wrong.join(", ")}`);
    }
    return rows;
  } finally {
    await client.end();
  }
}

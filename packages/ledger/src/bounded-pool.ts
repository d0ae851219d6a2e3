import type { PostgresPool, PostgresPoolClient } from "kysely";
import pg from "pg";

/**
 * A pool that gives no connection out again on which a query failed without an answer of the server: pg's
 * `query_timeout` ends the wait, but what was asked is still under way there, and the next query would wait behind it.
 */
export function boundedPool(pool: pg.Pool): PostgresPool {
  return {
    options: pool.options,
    connect: async () => boundedClient(await pool.connect()),
    end: () => pool.end(),
  };
}

function boundedClient(client: pg.PoolClient): PostgresPoolClient {
  let lost: unknown;
  const query = async (text: string, parameters: readonly unknown[]): Promise<unknown> => {
    // The rollback of a transaction whose connection is lost: the server does it by itself.
    if (lost !== undefined) {
      throw lost;
    }
    try {
      return await client.query(text, [...parameters]);
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) {
        lost = error;
      }
      throw error;
    }
  };
  const release = (destroy = false): void => client.release(destroy || lost !== undefined);
  // Nothing here streams, so there are no cursors.
  return { query, release } as PostgresPoolClient;
}

import { Redis } from "iovalkey";
import pg from "pg";

/** Lists of the queue: ids of orders that wait, and of those that a worker has taken and not yet handled. */
export const WAITING = "orders:waiting";
export const TAKEN = "orders:taken";

/** The platform's own authority signs the certificates of both servers. */
const { DATABASE_URL, QUEUE_URL, DATABASE_CA: ca } = process.env;

/** Connects to PostgreSQL. */
export function openDatabase() {
  const pool = new pg.Pool({ connectionString: DATABASE_URL, ssl: { ca }, max: 5 });
  // The pool replaces an idle connection that was lost, such as in a failover.
  pool.on("error", (error) => console.error(`PostgreSQL: ${error.message}`));
  return pool;
}

/** Connects to Valkey. */
export function openQueue() {
  const client = new Redis(QUEUE_URL, { tls: { ca } });
  // The client connects again by itself.
  client.on("error", (error) => console.error(`Valkey: ${error.message}`));
  return client;
}

import { readFileSync } from "node:fs";
import { type ClickHouseClient, ClickHouseError, ClickHouseLogLevel, createClient } from "@clickhouse/client";
import type { AnalyticsSettings } from "../config.ts";
import type { Place } from "./schema.ts";

/** A connection to the store, and where in it the tables are. */
export interface Store extends Place {
  client: ClickHouseClient;
}

export interface StoreOptions {
  /** Milliseconds until an answer, and concurrent connections. */
  timeoutMs?: number;
  connections?: number;
}

/**
 * The store does not answer, or not in time, or has no room: the same may work later.
 * `busy` says that it answered, but gave up for lack of time or memory, or what would be read is too much.
 */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  readonly busy: boolean;

  constructor(cause: unknown, busy = false) {
    super(busy ? "the store gave the query up" : "the store does not answer", { cause });
    this.busy = busy;
  }
}

/** Opens connections as they are needed: the store need not be there. The password and the authority are read once. */
export function openStore(settings: AnalyticsSettings, options: StoreOptions = {}): Store {
  const { url, username, passwordFile, caFile, database, cluster } = settings;
  const client = createClient({
    url,
    username,
    password: passwordFile === undefined ? "" : readFileSync(passwordFile, "utf8").trimEnd(),
    application: "slipway",
    request_timeout: options.timeoutMs ?? 30_000,
    max_open_connections: options.connections ?? 10,
    keep_alive: { enabled: true, idle_socket_ttl: 2_000 },
    // Failures are reported by what is thrown.
    log: { level: ClickHouseLogLevel.OFF },
    ...(caFile === undefined ? {} : { tls: { ca_cert: readFileSync(caFile) } }),
  });
  return { client, database, cluster };
}

/** Numbers of ClickHouse's errors for what takes too long, reads too much, or takes too much memory, or comes while it does too much. */
const BUSY = new Set(["158", "159", "160", "202", "241", "307", "396"]);
/** Errors about a statement or its data, which will be the same the next time. */
const isRefusal = (error: ClickHouseError): boolean =>
  [
    "6",
    "8",
    "27",
    "26",
    "33",
    "38",
    "41",
    "53",
    "62",
    "72",
    "117",
    "131",
    "321",
    "407",
    "441",
    "457",
  ].includes(error.code);

/**
 * A call to the store.
 * @throws StoreUnavailable when it may work later; ClickHouseError when it is the call that is wrong
 */
export async function ask<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ClickHouseError)) {
      throw new StoreUnavailable(error);
    }
    if (isRefusal(error)) {
      throw error;
    }
    throw new StoreUnavailable(error, BUSY.has(error.code));
  }
}

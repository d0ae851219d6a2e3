/** Reads INFO of a Valkey server as its monitoring account. */

import { once } from "node:events";
import type { Socket } from "node:net";
import { command, opened, openSocket } from "../valkey/resp.ts";
import type { Server } from "./postgresql-sampler.ts";
import type { Reading } from "./snapshot.ts";
import { parseInfo } from "./valkey.ts";

/** Sections that facts are in. */
const SECTIONS = ["server", "clients", "memory", "persistence", "stats", "replication", "keyspace"];

/** Bytes of an answer: some 6,000. */
const LIMIT_BYTES = 1024 * 1024;

/** @throws when the server does not answer, rejects the account, or reports nothing */
export async function sampleValkey(server: Omit<Server, "database">, signal: AbortSignal): Promise<Reading> {
  const socket = openSocket(server);
  const abandon = () => void socket.destroy(new Error("the sample was abandoned"));
  signal.addEventListener("abort", abandon, { once: true });
  try {
    await once(socket, opened(server));
    socket.write(command("AUTH", server.user, server.password) + command("INFO", ...SECTIONS));
    const facts = parseInfo(await answer(socket));
    const clockMs = Number(facts.server_time_usec) / 1_000;
    if (typeof facts.run_id !== "string" || !Number.isFinite(clockMs)) {
      throw new Error("the server reported no statistics");
    }
    const process = `${server.container}/${facts.run_id}`;
    return { raw: { process, clockMs, facts: numbersOf(facts) }, incomplete: false };
  } finally {
    signal.removeEventListener("abort", abandon);
    socket.destroy();
  }
}

/** Text that follows the answer to AUTH. An error is reported without its text, which may name the account. */
async function answer(socket: Socket): Promise<string> {
  let bytes = Buffer.alloc(0);
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes = Buffer.concat([bytes, chunk]);
    const text = bytes.toString("latin1");
    const [, length] = /^\+OK\r\n\$([0-9]+)\r\n/.exec(text) ?? [];
    if (/^(-|\+OK\r\n-)/.test(text)) {
      throw new Error("the server refused the monitoring account");
    }
    if (bytes.length > LIMIT_BYTES) {
      throw new Error("the server's answer is too long");
    }
    if (length === undefined) {
      continue;
    }
    const from = text.indexOf("\r\n", 5) + 2;
    if (bytes.length >= from + Number(length)) {
      return bytes.toString("utf8", from, from + Number(length));
    }
  }
  throw new Error("the server hung up");
}

/** Facts that are read later: no path, no name of a host, no address. */
const KEPT =
  /^(uptime_in_seconds|connected_clients|blocked_clients|used_memory|used_memory_peak|maxmemory|mem_fragmentation_ratio|loading|rdb_(saves|last_save_time|last_bgsave_status)|aof_(last_write_status|last_bgrewrite_status)|total_(commands_processed|net_input_bytes|net_output_bytes)|expired_keys|evicted_keys|keyspace_(hits|misses)|role|master_link_status|db[0-9]+)$/;

function numbersOf(facts: Reading["raw"]["facts"]): Reading["raw"]["facts"] {
  const kept = Object.entries(facts).filter(([name]) => KEPT.test(name));
  const replicas = Object.entries(facts)
    .filter(([name]) => /^slave[0-9]+$/.test(name))
    .map(([name, value]) => [
      name,
      String(value)
        .replaceAll(/(^|,)(ip|port)=[^,]*/g, "")
        .replace(/^,/, ""),
    ]);
  return Object.fromEntries([...kept, ...replicas]);
}

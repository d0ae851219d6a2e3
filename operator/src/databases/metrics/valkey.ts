/** From Valkey's INFO to the snapshot's groups. Pure. docs/databases-metrics.md has the sources. */

import type { ValkeyMetrics } from "@slipway/crds";
import { count, type Facts, Interval, number, type RawSample, ratio } from "./facts.ts";
import type { Expected } from "./postgresql.ts";

export interface ValkeyExpected extends Expected {
  profile: "key_value" | "cache" | "queue";
  /** Whether the profile keeps its data on a volume. */
  persistent: boolean;
}

/** Facts of an answer to INFO: `name:value` in lines, sections between them. */
export function parseInfo(text: string): Facts {
  const facts: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0 && !line.startsWith("#")) {
      facts[line.slice(0, colon)] = line.slice(colon + 1);
    }
  }
  return facts;
}

/**
 * @param now facts are the sections server, clients, memory, persistence, stats, replication and keyspace of INFO
 * @param before an earlier sample of the instance, for rates
 */
export function valkeyNative(
  now: RawSample,
  before: RawSample | undefined,
  expected: ValkeyExpected,
): ValkeyMetrics {
  const { facts } = now;
  const whole = Interval.between(before, now);
  // CONFIG RESETSTAT reports no time. It resets all to zero: one that shrinks shows that the others were reset.
  const counters = [
    "total_commands_processed",
    "total_net_input_bytes",
    "total_net_output_bytes",
    "expired_keys",
  ];
  const interval = counters.every((name) => whole?.growth(name) !== null) ? whole : undefined;
  const limit = count(facts.maxmemory);
  return {
    memory: {
      used_bytes: count(facts.used_memory),
      peak_bytes: count(facts.used_memory_peak),
      // Zero is no limit.
      limit_bytes: limit === 0 ? null : limit,
      fragmentation_ratio: number(facts.mem_fragmentation_ratio),
    },
    clients: { connected: count(facts.connected_clients), blocked: count(facts.blocked_clients) },
    activity: {
      operations_per_second: interval?.rate("total_commands_processed") ?? null,
      input_bytes_per_second: interval?.rate("total_net_input_bytes") ?? null,
      output_bytes_per_second: interval?.rate("total_net_output_bytes") ?? null,
    },
    keys: { expired_total: count(facts.expired_keys), evicted_total: count(facts.evicted_keys) },
    uptime_seconds: number(facts.uptime_in_seconds),
    ...profileGroup(facts, expected),
    reliability: { replication: replication(facts, expected), persistence: persistence(facts, expected) },
  };
}

function profileGroup(facts: Facts, { profile }: ValkeyExpected): Pick<ValkeyMetrics, "cache" | "key_value"> {
  if (profile === "cache") {
    const [hits, misses] = [count(facts.keyspace_hits), count(facts.keyspace_misses)];
    const lookups = hits === null || misses === null ? null : hits + misses;
    return { cache: { hits_total: hits, misses_total: misses, hit_ratio: ratio(hits, lookups) } };
  }
  if (profile !== "key_value") {
    return {};
  }
  // A database without keys is not in the section. Without `db0` it has none, if the server replied.
  const databases = Object.keys(facts).filter((name) => /^db[0-9]+$/.test(name));
  const total = (field: string) =>
    facts.uptime_in_seconds === undefined
      ? null
      : databases.reduce((keys, name) => keys + (count(part(facts[name], field)) ?? 0), 0);
  return { key_value: { keys_total: total("keys"), keys_with_expiration: total("expires") } };
}

/** Of a value such as `keys=2,expires=1,avg_ttl=0`. */
function part(value: Facts[string] | undefined, name: string): string | null {
  if (typeof value !== "string") {
    return null;
  }
  const found = value.split(",").find((given) => given.startsWith(`${name}=`));
  return found?.slice(name.length + 1) ?? null;
}

function replication(
  facts: Facts,
  { replicas }: ValkeyExpected,
): ValkeyMetrics["reliability"]["replication"] {
  if (facts.role === "master") {
    const members = Object.entries(facts)
      .filter(([name]) => /^slave[0-9]+$/.test(name))
      .map(([, value]) => value);
    const online = members.filter((value) => part(value, "state") === "online");
    const lags = online.map((value) => number(part(value, "lag"))).filter((lag) => lag !== null);
    const status = replicas === 0 ? "standalone" : online.length >= replicas ? "ok" : "degraded";
    return {
      status,
      replicas_available: online.length,
      replicas_expected: replicas,
      lag_seconds: lags.length > 0 ? Math.max(...lags) : null,
    };
  }
  const link = facts.master_link_status;
  return {
    status: link === "up" ? "connected" : link === "down" ? "disconnected" : null,
    replicas_available: null,
    replicas_expected: replicas,
    lag_seconds: null,
  };
}

function persistence(
  facts: Facts,
  { persistent }: ValkeyExpected,
): ValkeyMetrics["reliability"]["persistence"] {
  if (!persistent) {
    return { enabled: false, status: null, last_success_at: null };
  }
  const states = [facts.rdb_last_bgsave_status, facts.aof_last_write_status, facts.aof_last_bgrewrite_status];
  const known = states.filter((state) => typeof state === "string");
  const status = facts.loading === "1" ? "loading" : known.every((state) => state === "ok") ? "ok" : "failed";
  // Until the first save the server reports its own start as the time of the last one.
  const saved = (number(facts.rdb_saves) ?? 0) > 0 ? number(facts.rdb_last_save_time) : null;
  return {
    enabled: true,
    status: known.length === 0 ? null : status,
    last_success_at: saved === null ? null : new Date(saved * 1_000).toISOString(),
  };
}

import { expect, test } from "vitest";
import type { Facts, RawSample } from "./facts.ts";
import { parseInfo, type ValkeyExpected, valkeyNative } from "./valkey.ts";

/** As Valkey 9.1 answers INFO, shortened to a few lines of each section. */
const recorded = parseInfo(
  [
    "# Server",
    "redis_version:7.2.4",
    "valkey_version:9.1.2",
    "run_id:4f0c2b",
    "uptime_in_seconds:600",
    "",
    "# Clients",
    "connected_clients:5",
    "blocked_clients:1",
    "# Memory",
    "used_memory:1000000",
    "used_memory_peak:2000000",
    "maxmemory:201326592",
    "mem_fragmentation_ratio:1.25",
    "# Persistence",
    "loading:0",
    "rdb_saves:3",
    "rdb_last_save_time:1767225540",
    "rdb_last_bgsave_status:ok",
    "aof_enabled:1",
    "aof_last_bgrewrite_status:ok",
    "aof_last_write_status:ok",
    "# Stats",
    "total_commands_processed:1000",
    "total_net_input_bytes:20000",
    "total_net_output_bytes:30000",
    "expired_keys:7",
    "evicted_keys:0",
    "keyspace_hits:90",
    "keyspace_misses:10",
    "# Replication",
    "role:master",
    "connected_slaves:2",
    "slave0:ip=10.0.0.2,port=6379,state=online,offset=420,lag=0,type=replica",
    "slave1:ip=10.0.0.3,port=6379,state=online,offset=410,lag=1,type=replica",
    "# Keyspace",
    "db0:keys=12,expires=4,avg_ttl=1000",
    "db3:keys=1,expires=0,avg_ttl=0",
  ].join("\r\n"),
);

const AT = 1_767_225_600_000;
const raw = (change: Facts = {}, clockMs = AT, process = "pod/1"): RawSample => ({
  process,
  clockMs,
  facts: { ...recorded, ...change },
});
const expectedOf = (change: Partial<ValkeyExpected> = {}): ValkeyExpected => ({
  replicas: 2,
  profile: "key_value",
  persistent: true,
  ...change,
});
const native = (now: RawSample, before?: RawSample, change?: Partial<ValkeyExpected>) =>
  valkeyNative(now, before, expectedOf(change));
const later = (change: Facts = {}) =>
  raw(
    {
      total_commands_processed: "1600",
      total_net_input_bytes: "26000",
      total_net_output_bytes: "42000",
      ...change,
    },
    AT + 60_000,
  );

test("a first sample of a key-value service has no rate", () => {
  expect(native(raw())).toEqual({
    memory: {
      used_bytes: 1_000_000,
      peak_bytes: 2_000_000,
      limit_bytes: 201_326_592,
      fragmentation_ratio: 1.25,
    },
    clients: { connected: 5, blocked: 1 },
    activity: { operations_per_second: null, input_bytes_per_second: null, output_bytes_per_second: null },
    keys: { expired_total: 7, evicted_total: 0 },
    uptime_seconds: 600,
    key_value: { keys_total: 13, keys_with_expiration: 4 },
    reliability: {
      replication: { status: "ok", replicas_available: 2, replicas_expected: 2, lag_seconds: 1 },
      persistence: { enabled: true, status: "ok", last_success_at: "2025-12-31T23:59:00.000Z" },
    },
  });
});

test("each profile has its own group and no other", () => {
  const groups = (profile: ValkeyExpected["profile"]) => {
    const { cache, key_value } = native(raw(), undefined, { profile });
    return { cache, key_value };
  };
  expect(groups("cache")).toEqual({ cache: { hits_total: 90, misses_total: 10, hit_ratio: 0.9 } });
  expect(groups("key_value")).toEqual({ key_value: { keys_total: 13, keys_with_expiration: 4 } });
  expect(groups("queue")).toEqual({});
});

test.each<[string, RawSample, RawSample | undefined, (number | null)[]]>([
  ["of two samples of one process", later(), raw(), [10, 100, 200]],
  ["without an earlier sample", later(), undefined, [null, null, null]],
  ["of another process", later(), raw({}, AT, "pod/2"), [null, null, null]],
  ["after CONFIG RESETSTAT", later({ total_commands_processed: "4" }), raw(), [null, null, null]],
  [
    "after CONFIG RESETSTAT that one counter alone shows",
    later({ expired_keys: "0" }),
    raw(),
    [null, null, null],
  ],
])("rates %s", (_, now, before, expected) => {
  const { activity } = native(now, before);
  expect(Object.values(activity)).toEqual(expected);
});

test.each<[string, Facts, number, unknown[]]>([
  ["all replicas", {}, 2, ["ok", 2, 1]],
  [
    "one that is being copied",
    { slave1: "ip=10.0.0.3,port=6379,state=wait_bgsave,lag=0" },
    2,
    ["degraded", 1, 0],
  ],
  ["none, as the plan has it", { slave0: null, slave1: null }, 0, ["standalone", 0, null]],
  ["a replica that follows", { role: "slave", master_link_status: "up" }, 2, ["connected", null, null]],
  [
    "a replica that lost its primary",
    { role: "slave", master_link_status: "down" },
    2,
    ["disconnected", null, null],
  ],
  ["an answer without a role", { role: null }, 2, [null, null, null]],
])("replication with %s", (_, change, replicas, expected) => {
  const { status, replicas_available, lag_seconds } = native(raw(change), undefined, { replicas }).reliability
    .replication;
  expect([status, replicas_available, lag_seconds]).toEqual(expected);
});

test.each<[string, Facts, boolean, unknown]>([
  ["kept nowhere", {}, false, { enabled: false, status: null, last_success_at: null }],
  ["never saved", { rdb_saves: "0" }, true, { enabled: true, status: "ok", last_success_at: null }],
  [
    "that cannot be saved",
    { rdb_last_bgsave_status: "err", rdb_saves: "0" },
    true,
    { enabled: true, status: "failed", last_success_at: null },
  ],
  [
    "that is being loaded",
    { loading: "1", rdb_saves: "0" },
    true,
    { enabled: true, status: "loading", last_success_at: null },
  ],
])("persistence of data %s", (_, change, persistent, expected) => {
  expect(native(raw(change), undefined, { persistent }).reliability.persistence).toEqual(expected);
});

test("no limit is null, and so is what is absent", () => {
  expect(native(raw({ maxmemory: "0" })).memory.limit_bytes).toBeNull();
  expect(
    native(raw({ keyspace_hits: "0", keyspace_misses: "0" }), undefined, { profile: "cache" }).cache,
  ).toEqual({
    hits_total: 0,
    misses_total: 0,
    hit_ratio: null,
  });
  const empty = valkeyNative({ process: "p", clockMs: 0, facts: {} }, undefined, expectedOf());
  expect(empty).toMatchObject({
    memory: { used_bytes: null, peak_bytes: null, limit_bytes: null, fragmentation_ratio: null },
    uptime_seconds: null,
    key_value: { keys_total: null, keys_with_expiration: null },
    reliability: { persistence: { enabled: true, status: null, last_success_at: null } },
  });
});

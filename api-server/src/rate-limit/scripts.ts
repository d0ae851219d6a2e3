import { createHash } from "node:crypto";

/** A Lua script that Valkey runs as one step. */
export interface Script {
  readonly source: string;
  /** What `EVALSHA` calls it by. */
  readonly sha1: string;
}

function script(source: string): Script {
  return { source, sha1: createHash("sha1").update(source).digest("hex") };
}

/**
 * KEYS: bucket, and the newest write of an organization and that of its jobs' runs when they are requested. ARGV: limit, milliseconds of the window.
 * Returns whether the call is allowed (1 or 0), the calls counted, the milliseconds until the window ends, and both
 * writes or nil. A window starts with the first call in it, and its key expires when it ends: all by Valkey's own clock.
 * Refused calls are not counted.
 */
export const takeScript = script(`
local used = tonumber(redis.call('GET', KEYS[1]) or 0)
local allowed = 0
if used < tonumber(ARGV[1]) then
  allowed = 1
  used = redis.call('INCR', KEYS[1])
  if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
end
local newest, newestRun = false, false
if KEYS[2] then newest = redis.call('GET', KEYS[2]) end
if KEYS[3] then newestRun = redis.call('GET', KEYS[3]) end
return {allowed, used, redis.call('PTTL', KEYS[1]), newest, newestRun}
`);

/**
 * KEYS: newest write of an organization. ARGV: resourceVersion, milliseconds to keep it. Versions are decimal numbers
 * of any length, so the longer one is the greater.
 */
export const noteScript = script(`
local known = redis.call('GET', KEYS[1])
local version = ARGV[1]
if known and (#known > #version or (#known == #version and known >= version)) then return 0 end
redis.call('SET', KEYS[1], version, 'PX', ARGV[2])
return 1
`);

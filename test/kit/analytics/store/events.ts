import type { AccessEvent, Method } from "@slipway/analytics";

/** Numbers from 0 to 1, the same for the same seed. */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const pick = <T>(next: () => number, from: readonly T[]): T =>
  from[Math.floor(next() * from.length)] as T;

export const STATUSES = [101, 200, 200, 200, 204, 301, 304, 404, 404, 418, 499, 500, 503];
export const ADDRESSES = ["10.0.0.1", "10.0.0.2", "192.0.2.7", "2001:db8::1"];
export const PATHS = ["/", "/a", "/a/1", "/a/2", "/it's", '/"\\', "/\u00fc/\t", "/{p1:String}"];
const AGENTS = ["curl/8", "", "__proto__", "Mozilla/5.0 (X11; Linux) 'quoted' \\", "日本語"];
const METHODS: Method[] = ["GET", "GET", "POST", "OTHER"];
const MINUTE = 60_000;

/** An event of one of some projects between two moments, at minutes' edges more often than by chance. */
export function randomEvent(
  next: () => number,
  projects: readonly string[],
  from: number,
  to: number,
): AccessEvent {
  const at = Math.floor(from + next() * (to - from));
  const edge = Math.round(at / MINUTE) * MINUTE + pick(next, [-1, 0, 1]);
  const path = pick(next, PATHS);
  const [organization = "", project = ""] = pick(next, projects).split("/");
  return {
    organization,
    project,
    at: next() < 0.2 && edge >= from && edge < to ? edge : at,
    status: pick(next, STATUSES),
    method: pick(next, METHODS),
    route: path.replace(/\d+/, ":id"),
    path,
    userAgent: pick(next, AGENTS),
    sourceIp: pick(next, ADDRESSES),
    bytesReceived: Math.floor(next() * 10_000),
    bytesSent: Math.floor(next() ** 4 * 50_000_000),
    latencyUs: next() < 0.02 ? 0 : Math.floor(Math.exp(next() * 18)),
  };
}

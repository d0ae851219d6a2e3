/** Times of log lines as nodes write them: RFC 3339 with up to nine digits of a second. Pure. */

/** A time at the beginning of a text. */
export const STAMP = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2}) ?/;

/** Nanoseconds since the epoch of what {@link STAMP} has matched; zero for a time that does not exist. */
export function nanoseconds([, moment, fraction = "", zone]: RegExpExecArray): bigint {
  const milliseconds = Date.parse(`${moment}${zone}`);
  return Number.isNaN(milliseconds)
    ? 0n
    : BigInt(milliseconds) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

/** RFC 3339 in UTC with all nine digits. */
export function timestamp(time: bigint): string {
  const second = time / 1_000_000_000n;
  const moment = new Date(Number(second) * 1_000).toISOString().slice(0, 19);
  return `${moment}.${String(time - second * 1_000_000_000n).padStart(9, "0")}Z`;
}

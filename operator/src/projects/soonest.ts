/** The smallest of some pauses, in milliseconds; undefined when there is none. */
export function soonest(...pauses: readonly (number | undefined)[]): number | undefined {
  const known = pauses.filter((pause) => pause !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined;
}

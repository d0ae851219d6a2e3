/**
 * What of the newest lines of a log was not there before: those after the longest end of the earlier ones with which the newer
 * ones begin. Pure. Where nothing overlaps all of them are new.
 */
export function newLines(before: readonly string[], now: readonly string[]): readonly string[] {
  for (let shared = Math.min(before.length, now.length); shared > 0; shared -= 1) {
    const start = before.length - shared;
    let same = 0;
    while (same < shared && before[start + same] === now[same]) {
      same += 1;
    }
    if (same === shared) {
      return now.slice(shared);
    }
  }
  return now;
}

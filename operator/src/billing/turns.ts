/** The same items, one of each group in turn, so that no group's many keep those of others waiting. Pure. */
export function inTurns<T>(items: readonly T[], groupOf: (item: T) => string | undefined): T[] {
  const turns: T[] = [];
  let groups = [...Map.groupBy(items, groupOf).values()].map((group) => group.values());
  while (groups.length > 0) {
    groups = groups.filter((group) => {
      const { done, value } = group.next();
      if (!done) {
        turns.push(value);
      }
      return !done;
    });
  }
  return turns;
}

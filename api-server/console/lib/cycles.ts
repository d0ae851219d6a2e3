/** Billing cycles that are offered: the current one, and those of the year before it. Pure. */

const OFFERED = 12;

/** The names of cycles, `YYYY-MM`, the newest first. */
export function recentCycles(now: Date): string[] {
  return Array.from({ length: OFFERED }, (_, ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago, 1)).toISOString().slice(0, 7),
  );
}

/** A cycle that an address names, where it is one of those. */
export const cycleOf = (named: string | undefined, now: Date): string | undefined =>
  recentCycles(now).find((cycle) => cycle === named);

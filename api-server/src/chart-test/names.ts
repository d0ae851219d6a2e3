/** Names of the test's projects: unique for each run, and with the time at which it began, so that a later run deletes what a killed one left. */

/** What the names of all runs begin with. */
export const NAME_PREFIX = "helm-test-";

/** Longer than a run can take: its settings allow half an hour. */
const LEFT_OVER_AFTER_MS = 3_600_000;

const NAME = /^helm-test-(?:app|job)-([0-9a-z]{6,7})-[0-9a-f]{6}$/;

/** What the names of one run end with. @param random six hexadecimal digits */
export function runSuffix(now: Date, random: string): string {
  return `${Math.floor(now.getTime() / 1_000).toString(36)}-${random}`;
}

export function projectName(kind: "app" | "job", suffix: string): string {
  return `${NAME_PREFIX}${kind}-${suffix}`;
}

/** Whether a project is one of a run that has ended without deleting it. */
export function isLeftOver(name: string, now: Date): boolean {
  const began = NAME.exec(name)?.[1];
  return began !== undefined && now.getTime() - Number.parseInt(began, 36) * 1_000 > LEFT_OVER_AFTER_MS;
}

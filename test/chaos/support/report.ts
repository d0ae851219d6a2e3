import type { Violation } from "./checks.ts";

/** A violation with all that was seen of the run or the project that it is about. */
export interface ToldViolation extends Violation {
  story: readonly string[];
}

/**
 * Passes when nothing is wrong.
 * @throws Error that tells every violation in a line, and then what was seen of each subject
 */
export function expectNothingWrong(wrong: readonly ToldViolation[]): void {
  if (wrong.length === 0) {
    return;
  }
  const lines = wrong.map(({ rule, subject, detail }) => `${rule}: ${subject}: ${detail}`);
  const stories = new Map(wrong.map(({ subject, story }) => [subject, story]));
  const seen = [...stories].flatMap(([subject, story]) => [`what was seen of ${subject}:`, ...story]);
  throw new Error([...lines, ...seen].join("\n"));
}

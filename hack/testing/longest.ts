/** Which test files of a run took longest. */
import { relative } from "node:path";

/** How long one test file took, from its first hook to its last. */
export interface FileTime {
  readonly file: string;
  readonly seconds: number;
}

/** The part of Vitest's JSON report that is read here; times are milliseconds since 1970. */
interface VitestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly startTime: number;
    readonly endTime: number;
  }[];
}

/** The times of all files in Vitest's JSON report, their names relative to `root`. */
export function fileTimes(json: string, root: string): FileTime[] {
  const { testResults } = JSON.parse(json) as VitestReport;
  return testResults.map(({ name, startTime, endTime }) => ({
    file: relative(root, name),
    seconds: (endTime - startTime) / 1_000,
  }));
}

/** The `count` longest as lines, longest first. */
export function longest(times: readonly FileTime[], count: number): string[] {
  return times
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, count)
    .map(({ file, seconds }) => `${String(Math.round(seconds)).padStart(5)} s  ${file}`);
}

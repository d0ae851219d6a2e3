/** What is printed again of a failed stage at the end of a test run: readers look at the end first, and some logs keep only that. */
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";

/** Most lines for one stage, and most characters of one. */
const MAX_LINES = 40;
const MAX_LINE = 300;
/** Most characters of why one test failed: of a test that fails rarely it may be the only trace. */
const MAX_WHY = 2_000;

/** The last lines of a stage's output, each cut at a length. */
export function tail(output: string): string[] {
  const lines = stripVTControlCharacters(output).trimEnd().split("\n");
  return lines.slice(-MAX_LINES).map(cut);
}

/** The part of Vitest's JSON report that is read here. */
interface VitestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message?: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages?: readonly string[] | null;
    }[];
  }[];
}

/**
 * Failed tests of Vitest's JSON report, each with why, whole but for the calls that led there; a file that broke before its
 * first test by its own. An entry has a line for each line of why.
 */
export function failedTests(json: string, root: string): string[] {
  const { testResults } = JSON.parse(json) as VitestReport;
  const failed = testResults
    .filter(({ status }) => status === "failed")
    .flatMap(({ name, message, assertionResults }) => {
      const file = relative(root, name);
      const tests = assertionResults.filter(({ status }) => status === "failed");
      if (tests.length === 0) {
        return [`${file}: ${why([message])}`];
      }
      return tests.map((test) => `${file} › ${test.fullName}: ${why(test.failureMessages ?? [])}`);
    });
  const more = failed.length - MAX_LINES;
  return [...failed.slice(0, MAX_LINES), ...(more > 0 ? [`and ${more} more`] : [])];
}

/** What `go test -json` wrote of tests, and of packages, that failed. */
export function failedGoOutput(jsonLines: string): string {
  const events = jsonLines
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as { Action: string; Package?: string; Test?: string; Output?: string });
  const key = (event: (typeof events)[number]) => `${event.Package} ${event.Test ?? ""}`;
  const failed = new Set(events.filter(({ Action }) => Action === "fail").map(key));
  const plain = jsonLines.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
  const output = events.filter((event) => event.Action === "output" && failed.has(key(event)));
  return [...plain, output.map(({ Output }) => Output ?? "").join("")].join("\n");
}

function why(messages: readonly (string | undefined)[]): string {
  const lines = messages.flatMap((message = "") => stripVTControlCharacters(message).trim().split("\n"));
  const message = lines.filter((line) => !/^\s*at /.test(line)).join("\n  ");
  return message.length <= MAX_WHY ? message : `${message.slice(0, MAX_WHY - 1)}…`;
}

function cut(line: string): string {
  return line.length <= MAX_LINE ? line : `${line.slice(0, MAX_LINE - 1)}…`;
}

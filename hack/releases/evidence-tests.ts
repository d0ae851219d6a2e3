/** What tests show of a subject, by their files: counts for each. Pure. */
import { relative } from "node:path";

/** The part of Vitest's JSON report that is read here. */
interface VitestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

export interface FileCounts {
  /** From the repository's root. */
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  /** Long forms that were not run among them. */
  readonly skipped: number;
}

/** Subjects of the evidence, and the files whose tests show them. */
export const subjects = {
  "Chaos and failover": /^test\/chaos\/|(faults|failover|kills|replicas)\.(e2e|integration)\.test\.ts$/,
  Isolation:
    /^(test\/e2e\/(organizations-isolation|builds-hostile|databases-access|applications-access-lists)|builder\/src\/hostile|operator\/src\/(applications\/access|databases\/common\/(network-policy|member-access))|api-server\/src\/policy\/permissions)/,
  "Audit of money":
    /^(packages\/ledger\/src\/(settlement|storage-charges|usage|job-runs|idempotency|quota-reservations)|operator\/src\/jobs\/runs\/charge|test\/chaos\/[a-z]+\.chaos|test\/simulator\/)/,
} as const satisfies Record<string, RegExp>;
export type Subject = keyof typeof subjects;

/** Counts of every file in reports of Vitest. @param reports their JSON @param root that files are named from */
export function countFiles(reports: readonly string[], root: string): FileCounts[] {
  const files = reports.flatMap((json) => (JSON.parse(json) as VitestReport).testResults);
  return files
    .map(({ name, assertionResults }) => {
      const count = (...statuses: string[]) =>
        assertionResults.filter(({ status }) => statuses.includes(status)).length;
      return {
        file: relative(root, name),
        passed: count("passed"),
        failed: count("failed"),
        skipped: count("pending", "skipped", "todo"),
      };
    })
    .sort((a, b) => (a.file < b.file ? -1 : 1));
}

/** A table of the files that show a subject. @returns undefined where none ran */
export function subjectSection(subject: Subject, files: readonly FileCounts[]): string | undefined {
  const own = files.filter(({ file, passed, failed }) => subjects[subject].test(file) && passed + failed > 0);
  if (own.length === 0) {
    return undefined;
  }
  const sum = (of: (one: FileCounts) => number) => own.reduce((total, one) => total + of(one), 0);
  return [
    `${sum(({ passed }) => passed)} passed, ${sum(({ failed }) => failed)} failed.`,
    "",
    "| tests | passed | failed | skipped |",
    "| --- | --- | --- | --- |",
    ...own.map(({ file, passed, failed, skipped }) => `| \`${file}\` | ${passed} | ${failed} | ${skipped} |`),
  ].join("\n");
}

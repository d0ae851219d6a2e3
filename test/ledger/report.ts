/** The table: what a ledger of two instances went through, and for how long nothing was written. Pure. */

/** One time that something befell it. Milliseconds. */
export interface Round {
  readonly fault: string;
  /** Longest time without a row that the ledger acknowledged. */
  readonly ledgerGap: number;
  /** Longest time without a write that `/v1` answered with success. */
  readonly apiGap: number;
}

/** Rows that were acknowledged, and those of them that are not there. */
export interface Rows {
  readonly writer: string;
  readonly acknowledged: number;
  readonly lost: number;
}

export interface Results {
  readonly commit: string;
  readonly rounds: readonly Round[];
  readonly rows: readonly Rows[];
  /** Rows that a former primary acknowledged although another one took writes. */
  readonly secondPrimaries: number;
  /** Rows of the tables of before in the ledger of one instance, and in that of two. */
  readonly converted: { readonly before: number; readonly after: number };
  /** Bytes of the ledger in a backup of the platform, which is of the primary. */
  readonly backupBytes: number;
}

/** What is wrong with them; empty when nothing was lost. */
export function faults({ rows, secondPrimaries, converted, backupBytes, rounds }: Results): string[] {
  const found = rows.flatMap(({ writer, acknowledged, lost }) => [
    ...(acknowledged === 0 ? [`${writer}: no row was acknowledged`] : []),
    ...(lost > 0 ? [`${writer}: ${lost} of ${acknowledged} acknowledged rows are lost`] : []),
  ]);
  return [
    ...found,
    ...(rounds.length === 0 ? ["nothing befell the ledger"] : []),
    ...(secondPrimaries > 0 ? [`${secondPrimaries} rows were acknowledged by a second primary`] : []),
    ...(converted.before === 0 || converted.after < converted.before
      ? [`${converted.after} of ${converted.before} rows are there after the conversion`]
      : []),
    ...(backupBytes === 0 ? ["a backup of the platform has no ledger"] : []),
  ];
}

/** Seconds: the least, the median and the most. */
function spread(milliseconds: readonly number[]): string {
  const sorted = milliseconds.toSorted((a, b) => a - b);
  const middle = Math.floor((sorted.length - 1) / 2);
  const median = ((sorted[middle] ?? 0) + (sorted[sorted.length - 1 - middle] ?? 0)) / 2;
  return [sorted[0] ?? 0, median, sorted.at(-1) ?? 0].map((ms) => (ms / 1_000).toFixed(1)).join(" / ");
}

export function markdown(results: Results): string {
  const { commit, rounds, rows, converted } = results;
  const wrong = faults(results);
  const names = [...new Set(rounds.map(({ fault }) => fault))];
  return [
    `Commit ${commit}. A ledger of one instance became one of two with ${converted.after} of ${converted.before} rows. ` +
      `Acknowledged by a second primary: ${results.secondPrimaries}.`,
    "",
    "| what befell the ledger | times | s without a row: min / median / max | s without a write of /v1 |",
    "| --- | --- | --- | --- |",
    ...names.map((name) => {
      const own = rounds.filter(({ fault }) => fault === name);
      const gaps = [own.map(({ ledgerGap }) => ledgerGap), own.map(({ apiGap }) => apiGap)].map(spread);
      return `| ${name} | ${own.length} | ${gaps.join(" | ")} |`;
    }),
    "",
    "| writer | acknowledged | lost |",
    "| --- | --- | --- |",
    ...rows.map(({ writer, acknowledged, lost }) => `| ${writer} | ${acknowledged} | ${lost} |`),
    "",
    ...(wrong.length > 0 ? ["Wrong:", ...wrong.map((line) => `- ${line}`), ""] : []),
  ].join("\n");
}

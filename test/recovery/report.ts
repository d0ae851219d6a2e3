/** The table: what users had, and what of it came back after the platform was destroyed and restored. Pure. */

/** One line of it. */
export interface Restored {
  readonly what: string;
  readonly before: number;
  readonly after: number;
  /** Seconds after the first attempt to restore began at which all of it was there, or was given up. */
  readonly seconds: number;
}

export interface Results {
  readonly commit: string;
  readonly lines: readonly Restored[];
  /** Steps in their order, and the seconds that each took. */
  readonly steps: readonly { readonly name: string; readonly seconds: number }[];
  /** Objects of the backup by kind, and the bytes of the ledger in it. */
  readonly backup: { readonly objects: Readonly<Record<string, number>>; readonly ledgerBytes: number };
  /** Databases that came back empty, and those that were to. */
  readonly emptyDatabases: { readonly found: readonly string[]; readonly expected: readonly string[] };
}

/** What is wrong with them; empty when everything came back. */
export function faults({ lines, emptyDatabases: { found, expected } }: Results): string[] {
  const missing = lines
    .filter(({ before, after }) => after < before)
    .map(({ what, before, after }) => `${what}: ${after} of ${before}`);
  const same = JSON.stringify(found.toSorted()) === JSON.stringify(expected.toSorted());
  return same ? missing : [...missing, `empty databases: ${found.join(", ")}, not ${expected.join(", ")}`];
}

export function markdown(results: Results): string {
  const { commit, lines, steps, backup, emptyDatabases } = results;
  const objects = Object.entries(backup.objects).map(([kind, count]) => `${count} x ${kind}`);
  const wrong = faults(results);
  return [
    `Commit ${commit}. The backup has ${objects.join(", ")}, and ${Math.round(backup.ledgerBytes / 1024)} KiB of the ledger. ` +
      `Databases without a backup, which come back empty: ${emptyDatabases.found.length}.`,
    "",
    "| what | before | after | s after the first attempt |",
    "| --- | --- | --- | --- |",
    ...lines.map(
      ({ what, before, after, seconds }) => `| ${what} | ${before} | ${after} | ${seconds.toFixed(0)} |`,
    ),
    "",
    "| step | s |",
    "| --- | --- |",
    ...steps.map(({ name, seconds }) => `| ${name} | ${seconds.toFixed(1)} |`),
    "",
    ...(wrong.length > 0 ? ["Wrong:", ...wrong.map((line) => `- ${line}`), ""] : []),
  ].join("\n");
}

/** Reports of long measurements on a stack, which outlive it: a page, and its figures for the evidence of a release. */
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { logDir } from "../lib/paths.ts";

export type Measurement = "hostile" | "ledger" | "recovery" | "upgrade";

/** Writes `.slipway/logs/<name>/report.md` and `report.json`, in the place of those before, and prints the page. */
export async function writeReport(name: Measurement, results: object, page: string): Promise<void> {
  const folder = join(logDir, name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "report.md"), page);
  await writeFile(join(folder, "report.json"), `${JSON.stringify(results, null, 2)}\n`);
  console.log(page);
}

/** What the newest measurement came to. @returns undefined where there was none */
export function readReport<T>(name: Measurement): T | undefined {
  const file = join(logDir, name, "report.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as T) : undefined;
}

/** What tests and benchmarks measured, for the evidence of a release: a file for each name, so that any process may write. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { contentHash } from "../lib/hash.ts";
import { logDir } from "../lib/paths.ts";
import { testedCommit } from "./summary.ts";

export const topics = ["chaos", "failover", "simulator", "benchmarks"] as const;
export type Topic = (typeof topics)[number];

const figures = z.object({
  topic: z.enum(topics),
  /** What was done, as in `PostgreSQL, killed`. */
  name: z.string(),
  /** What came of it: `{"rows acknowledged": 812, "ms without writes": 1430}`. */
  values: z.record(z.string(), z.number()),
  /** That was tested. */
  commit: z.string(),
});
export type Figures = z.infer<typeof figures>;

const folder = join(logDir, "figures");

/** Records what was measured, in the place of what the same name measured before, and prints it. */
export async function recordFigures(topic: Topic, name: string, values: Figures["values"]): Promise<void> {
  const record: Figures = { topic, name, values, commit: await testedCommit() };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${contentHash([topic, name])}.json`), JSON.stringify(record));
  console.log(`${name}: ${valuesLine(values)}`);
}

/** Removes what was recorded: a whole run begins with nothing. */
export const removeFigures = (): void => rmSync(folder, { recursive: true, force: true });

/** Everything that was recorded, by topic and name. */
export function readFigures(): Figures[] {
  let files: string[];
  try {
    files = readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return [];
    }
    throw error;
  }
  return files
    .map((file) => figures.parse(JSON.parse(readFileSync(join(folder, file), "utf8"))))
    .sort((a, b) => (`${a.topic} ${a.name}` < `${b.topic} ${b.name}` ? -1 : 1));
}

/** `812 rows acknowledged, 1,430 ms without writes` */
export const valuesLine = (values: Figures["values"]): string =>
  Object.entries(values)
    .map(([what, value]) => `${Number(value.toFixed(2)).toLocaleString("en")} ${what}`)
    .join(", ");

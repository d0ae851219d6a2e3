/** What a run of the test suite came to, for those who read it later. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/exec.ts";
import { root } from "../lib/paths.ts";
import type { Counts } from "./counts.ts";

export interface StageResult extends Counts {
  readonly name: string;
  readonly about: string;
  readonly seconds: number;
}

export interface Summary {
  /** Commit that was tested. */
  readonly commit: string;
  readonly stages: readonly StageResult[];
}

/** Where the newest run leaves it. */
export const summaryFile = join(root, ".slipway", "logs", "test", "summary.json");

export async function writeSummary(stages: readonly StageResult[]): Promise<void> {
  const commit = (await run("git", ["-C", root, "rev-parse", "--short=8", "HEAD"])).trim();
  await writeFile(summaryFile, `${JSON.stringify({ commit, stages } satisfies Summary, null, 2)}\n`);
}

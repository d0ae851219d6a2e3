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
  /** Commit that was tested; with `+` where files were changed since. */
  readonly commit: string;
  /** Whether all stages ran. */
  readonly isWhole: boolean;
  readonly stages: readonly StageResult[];
}

/** Where the newest run leaves it. */
export const summaryFile = join(root, ".slipway", "logs", "test", "summary.json");

export async function writeSummary(stages: readonly StageResult[], isWhole: boolean): Promise<void> {
  const summary: Summary = { commit: await testedCommit(), isWhole, stages };
  await writeFile(summaryFile, `${JSON.stringify(summary, null, 2)}\n`);
}

/** The commit of these sources, with `+` where files differ from it; `unknown` outside of a repository. */
export async function testedCommit(): Promise<string> {
  // Tests that run beside one another ask for it.
  const git = async (args: string[]) =>
    (await run("git", ["--no-optional-locks", "-C", root, ...args])).trim();
  try {
    const changes = await git(["status", "--porcelain"]);
    return `${await git(["rev-parse", "--short=8", "HEAD"])}${changes === "" ? "" : "+"}`;
  } catch {
    return "unknown";
  }
}

import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { contractPackages, ensurePackages } from "../../hack/cluster/packages.ts";
import { run } from "../../hack/lib/exec.ts";
import { contentHash } from "../../hack/lib/hash.ts";
import { cacheDir } from "../../hack/lib/paths.ts";

const requirements = join(import.meta.dirname, "requirements.txt");

/**
 * Installs schemathesis at the pinned versions into a virtual environment that all checkouts with the same pins share, once.
 * A virtual environment keeps its path, so it is complete when the stamp in it is written, which is last.
 * @returns the path of its command
 */
export async function ensureSchemathesis(log: string): Promise<string> {
  const venv = join(cacheDir, "schemathesis", contentHash([await readFile(requirements, "utf8")]));
  const stamp = join(venv, "complete");
  if (!existsSync(stamp)) {
    await ensurePackages(contractPackages, log);
    await rm(venv, { recursive: true, force: true });
    await run("python3", ["-m", "venv", venv], { log });
    const install = ["install", "--quiet", "--no-input", "--disable-pip-version-check", "-r", requirements];
    await run(join(venv, "bin/pip"), install, { log });
    await writeFile(stamp, "");
  }
  return join(venv, "bin/schemathesis");
}

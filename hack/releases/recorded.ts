/**
 * Contracts of releases, as they were recorded. `node hack/releases/recorded.ts VERSION` records that of these sources, once; a release
 * that is recorded already is compared with them.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../lib/paths.ts";
import { breaksOf, type Contract, readContract } from "./contract.ts";

const RELEASES = join(root, "docs/releases");
const fileOf = (version: string): string => join(RELEASES, version, "contract.json");

/** Versions whose contracts are recorded, oldest first. */
export function recordedVersions(): string[] {
  return readdirSync(RELEASES, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(fileOf(entry.name)))
    .map(({ name }) => name)
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/** The contract of a release. @throws Error if there is none */
export function recordedContract(version: string): Contract {
  return JSON.parse(readFileSync(fileOf(version), "utf8")) as Contract;
}

/** The commit that a release was made from; undefined for one that is not recorded. */
export function releasedCommit(version: string): string | undefined {
  const file = join(RELEASES, version, "commit");
  return existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;
}

async function main([version = ""]: string[]): Promise<void> {
  if (!/^\d+\.\d+\.\d+$/.test(version)) {
    throw new Error("usage: node hack/releases/recorded.ts VERSION, like 0.2.0");
  }
  const contract = await readContract();
  const file = fileOf(version);
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${JSON.stringify(contract, null, 1)}\n`);
    console.log(`recorded the contract of ${version}: ${Object.keys(contract.api.paths).length} paths`);
    return;
  }
  const breaks = breaksOf(recordedContract(version), contract);
  console.log(breaks.join("\n") || `nothing of ${version} is broken`);
  process.exitCode = breaks.length > 0 ? 1 : 0;
}

if (import.meta.main) {
  await main(process.argv.slice(2)).catch((error: Error) => {
    console.error(error.message);
    process.exitCode = 2;
  });
}

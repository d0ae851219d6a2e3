/**
 * `npm run generate`: writes every file that is generated from others. `--check` writes nothing and exits 1 when one is
 * stale. A generator is pure: it returns the files, and this command writes those that differ.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { generateCrds } from "@slipway/crds/generate";
import { generateChartFiles } from "./chart/generate.ts";
import { generateCliDocs } from "./docs/cli.ts";
import { generateTraceability } from "./docs/traceability.ts";
import { generateDockerfile } from "./images/generate.ts";
import { generateSdk } from "./sdk/generate.ts";

/** One source of generated files. */
interface Generator {
  readonly name: string;
  /** The files, by path from the repository's root, with their whole content. */
  readonly run: () => ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>;
}

const generators: readonly Generator[] = [
  { name: "custom resource definitions", run: generateCrds },
  { name: "chart", run: generateChartFiles },
  { name: "Dockerfile", run: generateDockerfile },
  { name: "types of the SDK", run: generateSdk },
  { name: "page of the command line", run: generateCliDocs },
  { name: "traceability", run: generateTraceability },
];

const root = fileURLToPath(new URL("..", import.meta.url));

function current(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return undefined;
    }
    throw error;
  }
}

const check = process.argv.includes("--check");
let stale = 0;
for (const { name, run } of generators) {
  const began = performance.now();
  const files = await run();
  let changed = 0;
  for (const [path, content] of files) {
    const target = join(root, path);
    if (current(target) === content) {
      continue;
    }
    changed += 1;
    if (!check) {
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, content);
    }
    console.log(`  ${check ? "stale" : "wrote"} ${path}`);
  }
  stale += changed;
  const time = Math.round(performance.now() - began);
  console.log(`${name}: ${files.size} files, ${changed} ${check ? "stale" : "changed"} (${time} ms)`);
}
if (check && stale > 0) {
  console.error("generated files are stale: run `npm run generate` and commit the result");
  process.exitCode = 1;
}

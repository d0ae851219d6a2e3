/**
 * The whole test suite, stage by stage: `hack/test.sh [--only STAGE,...] [--keep] [--long]`.
 * Prints one closing line, `N passed, N failed`, and exits 1 when anything failed.
 */
import { spawn } from "node:child_process";
import { createWriteStream, existsSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ensurePackages } from "./cluster/packages.ts";
import {
  add,
  type Counts,
  closingLine,
  goCounts,
  junitCounts,
  none,
  vitestCounts,
} from "./testing/counts.ts";

const root = join(import.meta.dirname, "..");
const logs = join(root, ".slipway", "logs", "test");
/** Folders with Go tests, each in a module of its own or with others. */
const goPackages = ["hack/cluster/netpol", "hack/images/sample-http"];
/** Debian packages that tests need and the stack does not: PostgreSQL's server tools. */
const testPackages = ["postgresql"];

interface Outcome {
  readonly code: number;
  readonly output: string;
}

/** Runs a command in the repository's root; its output goes to the terminal and to `.slipway/logs/test/<name>.log`. */
function run(
  name: string,
  command: string,
  args: readonly string[],
  options: { cwd?: string; quiet?: boolean } = {},
): Promise<Outcome> {
  const log = createWriteStream(join(logs, `${name}.log`));
  const child = spawn(command, args, {
    cwd: options.cwd ?? root,
    stdio: ["ignore", "pipe", "pipe"],
    env: process.env,
  });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      log.write(chunk);
      if (options.quiet !== true) process.stdout.write(chunk);
    });
  }
  return new Promise((resolve) => {
    const finish = (code: number): void => {
      log.end();
      resolve({ code, output: Buffer.concat(chunks).toString("utf8") });
    };
    child.once("error", (error) => {
      chunks.push(Buffer.from(`${command}: ${error.message}\n`));
      finish(127);
    });
    child.once("close", (code) => finish(code ?? 1));
  });
}

/** A command that is one test as a whole. */
async function single(name: string, command: string, args: readonly string[]): Promise<Counts> {
  const { code } = await run(name, command, args);
  return code === 0 ? { ...none, passed: 1 } : { ...none, failed: 1 };
}

async function vitest(project: string): Promise<Counts> {
  const report = join(logs, `${project}.json`);
  await rm(report, { force: true });
  const { code } = await run(project, "vitest", [
    "run",
    "--project",
    project,
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${report}`,
  ]);
  if (!existsSync(report)) return { ...none, failed: 1 };
  const counts = vitestCounts(await readFile(report, "utf8"));
  // An unhandled error outside of any test fails the run without failing a test.
  return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}

async function go(): Promise<Counts> {
  let counts = none;
  for (const folder of goPackages) {
    const name = `go-${folder.replaceAll("/", "-")}`;
    const { code, output } = await run(name, "go", ["test", "-json", "./..."], {
      cwd: join(root, folder),
      quiet: true,
    });
    const own = goCounts(output);
    const counted = code !== 0 && own.failed === 0 ? { ...own, failed: 1 } : own;
    console.log(`  ${folder}: ${closingLine(counted)}`);
    if (counted.failed > 0) console.log(output);
    counts = add(counts, counted);
  }
  return counts;
}

/** The API against its own OpenAPI document: one test an operation, and one for calls that follow one another. */
async function contract(): Promise<Counts> {
  const report = join(logs, "contract.xml");
  await rm(report, { force: true });
  await ensurePackages(testPackages, join(logs, "packages.log"));
  const { code } = await run("contract", process.execPath, ["test/contract/run.ts", "--report", report]);
  if (!existsSync(report)) return { ...none, failed: 1 };
  const counts = junitCounts(await readFile(report, "utf8"));
  return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}

const stages: Readonly<Record<string, { readonly about: string; readonly run: () => Promise<Counts> }>> = {
  verify: {
    about: "generated files, format, lint, types, clean tree",
    run: () => single("verify", "hack/verify.sh", []),
  },
  unit: { about: "unit tests", run: () => vitest("unit") },
  up: {
    about: "the stack comes up",
    run: () => {
      // The tests create more projects a minute than a client may.
      process.env.SLIPWAY_RATE_LIMIT_SCALE ??= "100";
      return single("up", "hack/up.sh", []);
    },
  },
  go: { about: "Go tests of the embedded cluster's parts", run: go },
  integration: {
    about: "against a real kube-apiserver, PostgreSQL and Helm",
    run: async () => {
      const installed = await ensurePackages(testPackages, join(logs, "packages.log"));
      if (installed.length > 0) console.log(`  installed ${installed.join(", ")}`);
      return vitest("integration");
    },
  },
  contract: { about: "the API against its own OpenAPI document", run: contract },
  e2e: { about: "end to end on the running stack", run: () => vitest("e2e") },
};

function usage(): string {
  const lines = Object.entries(stages).map(([name, stage]) => `  ${name.padEnd(12)} ${stage.about}`);
  return `usage: hack/test.sh [--only STAGE,...] [--keep] [--long]

Stages, in order:
${lines.join("\n")}

  --only   run just these stages
  --keep   leave the stack running at the end (one that ran before is always left)
  --long   the long forms of tests that have one
`;
}

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    keep: { type: "boolean", default: false },
    long: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(usage());
  process.exit(0);
}
const chosen = values.only?.split(",") ?? Object.keys(stages);
const unknown = chosen.filter((name) => !(name in stages));
if (unknown.length > 0) {
  console.error(`test: no stage ${unknown.join(", ")}\n${usage()}`);
  process.exit(2);
}
if (values.long) process.env.SLIPWAY_TEST_LONG = "1";

await mkdir(logs, { recursive: true });
const ranBefore = existsSync(join(root, ".slipway", "stack.env"));
let total = none;
const rows: string[] = [];
for (const name of chosen) {
  const stage = stages[name];
  if (stage === undefined) continue;
  console.log(`\n== ${name}: ${stage.about}`);
  const start = performance.now();
  const counts = await stage.run();
  const seconds = Math.round((performance.now() - start) / 1000);
  rows.push(`${name.padEnd(12)} ${String(seconds).padStart(5)} s  ${closingLine(counts)}`);
  total = add(total, counts);
  if (name === "up" && counts.failed > 0) {
    console.error("test: the stack did not come up, so what needs it was not run; see the lines above");
    break;
  }
}
if (chosen.includes("up") && !ranBefore && !values.keep) {
  await run("down", "hack/down.sh", ["--purge"]);
}

console.log(`\n${rows.join("\n")}\nlogs: .slipway/logs/test\n`);
console.log(closingLine(total));
process.exit(total.failed > 0 ? 1 : 0);

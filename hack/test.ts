/**
 * The whole test suite, stage by stage: `hack/test.sh [--only STAGE,...] [--keep] [--long]`.
 * Prints one closing line, `N passed, N failed`, and exits 1 when anything failed.
 */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./lib/paths.ts";
import { add, type Counts, closingLine, none } from "./testing/counts.ts";
import {
  contract,
  go,
  lastWords,
  logs,
  longestFiles,
  run,
  single,
  vitest,
  withPostgres,
} from "./testing/runners.ts";

interface Stage {
  readonly about: string;
  /** @param isBeside whether another stage runs meanwhile */
  readonly run: (isBeside: boolean) => Promise<Counts>;
  /** Only when it is asked for: another one has it as a part. */
  readonly isPart?: true;
}

const stages: Readonly<Record<string, Stage>> = {
  up: {
    about: "the stack comes up",
    run: () => {
      // The tests create more projects a minute than a client may.
      process.env.SLIPWAY_RATE_LIMIT_SCALE ??= "100";
      return single("up", "hack/up.sh", []);
    },
  },
  e2e: {
    about: "end to end on the running stack",
    run: () => vitest("e2e", ["e2e", "e2e-alone"]),
  },
  verify: {
    about: "generated files, format, lint, types, clean tree",
    run: (isBeside) => single("verify", "hack/verify.sh", [], isBeside),
  },
  unit: { about: "unit tests", run: (isBeside) => vitest("unit", ["unit"], isBeside) },
  go: { about: "Go tests of the embedded cluster's parts", run: go },
  "integration+chaos": {
    about: "the next two at once, with the same workers",
    run: (isBeside) => withPostgres("integration+chaos", ["integration", "chaos"], isBeside),
  },
  integration: {
    about: "against a real kube-apiserver, PostgreSQL and Helm",
    isPart: true,
    run: (isBeside) => withPostgres("integration", ["integration"], isBeside),
  },
  chaos: {
    about: "scheduled jobs while the operator, the cluster and the ledger fail",
    isPart: true,
    run: (isBeside) => withPostgres("chaos", ["chaos"], isBeside),
  },
  contract: { about: "the API against its own OpenAPI document", run: contract },
  simulate: {
    about: "scheduled jobs in simulated time: 100,000 occurrences, with --long 1,000,000",
    run: (isBeside) =>
      single(
        "simulate",
        process.execPath,
        [
          "operator/src/jobrun/simulator/main.ts",
          ...(process.env.SLIPWAY_TEST_LONG === "1" ? ["--long"] : []),
        ],
        isBeside,
      ),
  },
};
/** Run one after the other on the stack; all that comes after `up` runs meanwhile, one after the other too, in what they leave. */
const onStack = ["e2e"];

function usage(): string {
  const lines = Object.entries(stages).map(([name, stage]) => `  ${name.padEnd(18)} ${stage.about}`);
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
const usual = Object.keys(stages).filter((name) => stages[name]?.isPart !== true);
const chosen = values.only?.split(",") ?? usual;
const unknown = chosen.filter((name) => !(name in stages));
if (unknown.length > 0) {
  console.error(`test: no stage ${unknown.join(", ")}\n${usage()}`);
  process.exit(2);
}
if (values.long) process.env.SLIPWAY_TEST_LONG = "1";
// Hundreds of processes are started that load the same modules.
process.env.NODE_COMPILE_CACHE ??= join(root, ".slipway", "compile-cache");

await mkdir(logs, { recursive: true });
const ranBefore = existsSync(join(root, ".slipway", "stack.env"));
let total = none;
const rows: string[] = [];
const failed: string[] = [];

/** Runs a stage, counts it, and notes how long it took. */
async function count(name: string, isBeside: boolean): Promise<Counts> {
  const stage = stages[name];
  if (stage === undefined) return none;
  console.log(`\n== ${name}: ${stage.about}${isBeside ? " (meanwhile, shown at its end)" : ""}`);
  const start = performance.now();
  const counts = await stage.run(isBeside);
  const seconds = Math.round((performance.now() - start) / 1000);
  rows.push(`${name.padEnd(18)} ${String(seconds).padStart(5)} s  ${closingLine(counts)}`);
  total = add(total, counts);
  if (counts.failed > 0) failed.push(name);
  return counts;
}

async function countAll(names: readonly string[], isBeside: boolean): Promise<void> {
  for (const name of names) await count(name, isBeside);
}

const start = performance.now();
const isUp = !chosen.includes("up") || (await count("up", false)).failed === 0;
if (isUp) {
  const stackStages = chosen.filter((name) => onStack.includes(name));
  const others = chosen.filter((name) => name !== "up" && !onStack.includes(name));
  await Promise.all([countAll(stackStages, false), countAll(others, stackStages.length > 0)]);
} else {
  console.error("test: the stack did not come up, so what needs it was not run; see the lines above");
}
if (chosen.includes("up") && !ranBefore && !values.keep) {
  await run("down", "hack/down.sh", ["--purge"]);
}

for (const name of failed) {
  console.log(`\n== ${name} failed:\n${(await lastWords(name)).map((line) => `  ${line}`).join("\n")}`);
}
const minutes = Math.round((performance.now() - start) / 60_000);
console.log(`\nlongest files:\n${(await longestFiles(15)).join("\n")}`);
console.log(`\n${rows.join("\n")}\nin all ${minutes} min; logs: .slipway/logs/test\n`);
console.log(closingLine(total));
process.exit(total.failed > 0 ? 1 : 0);

/**
 * The whole test suite, stage by stage: `hack/test.sh [--only STAGE,...] [--keep] [--long]`.
 * Prints one closing line, `N passed, N failed`, and exits 1 when anything failed.
 */
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./lib/paths.ts";
import { add, type Counts, closingLine, none } from "./testing/counts.ts";
import { removeFigures } from "./testing/figures.ts";
import { kindStages } from "./testing/kind.ts";
import { RECORD_FOLDER_VARIABLE } from "./testing/platform-calls.ts";
import { busy, processorTimes } from "./testing/processors.ts";
import {
  contract,
  failureDetails,
  go,
  logs,
  longestFiles,
  permissions,
  run,
  single,
  up,
  vitest,
  withPostgres,
} from "./testing/runners.ts";
import type { Stage } from "./testing/stage.ts";
import { type StageResult, writeSummary } from "./testing/summary.ts";

const ownStages: Readonly<Record<string, Stage>> = {
  verify: {
    about: "generated files, format, lint, types, shell scripts, workflows, clean tree",
    beside: "up",
    run: (isBeside) => single("verify", "hack/verify.sh", [], isBeside),
  },
  unit: { about: "unit tests", run: unit },
  binaries: {
    about: "programs of the embedded cluster and of tests are built",
    // Here and not in a test's hook, whose time is limited.
    run: () => single("binaries", process.execPath, ["hack/cluster/build.ts"]),
  },
  go: { about: "Go tests of the embedded cluster's parts", beside: "integration", run: go },
  integration: {
    about: "against a real kube-apiserver, PostgreSQL and Helm",
    // Before there is a stack, which takes a twelfth of two processors for itself.
    run: () => withPostgres("integration"),
  },
  servers: {
    about: "against real images, builds and servers of databases, without Kubernetes",
    // By themselves: they take one and a half minutes on a slow machine, and fourteen beside others there.
    run: () => withPostgres("servers"),
  },
  chaos: {
    about: "scheduled jobs while the operator, the cluster and the ledger fail",
    run: () => withPostgres("chaos"),
  },
  contract: {
    about: "the API against its own OpenAPI document",
    // It leaves half of two processors unused, the chaos tests a fifth.
    beside: "chaos",
    run: contract,
  },
  simulate: {
    about: "scheduled jobs in simulated time: 4,000 occurrences, with --long 1,000,000",
    beside: "up",
    run: (isBeside) =>
      single(
        "simulate",
        process.execPath,
        [
          "test/simulator/main.ts",
          ...(process.env.SLIPWAY_TEST_LONG === "1" ? ["--long"] : ["--occurrences", "4000"]),
        ],
        isBeside,
      ),
  },
  up: {
    about: "the stack comes up",
    run: () => up("up"),
  },
  e2e: {
    about: "end to end on the running stack",
    run: () => vitest("e2e"),
  },
  "e2e-alone": {
    about: "the same, where parts of the platform are replaced, stopped or killed",
    run: () => vitest("e2e-alone", { projects: ["e2e-operators", "e2e-alone"] }),
  },
  hostile: {
    about: "hostile tenants concurrently, with the API's own rate limits",
    // Latencies are printed and fail nothing: no test is timed.
    run: () =>
      single("hostile", process.execPath, [
        "test/hostile/main.ts",
        "--no-latency",
        "--rate-limit-scale",
        "1",
        ...(isStackKept ? [] : ["--no-restore"]),
      ]),
  },
  upgrade: {
    about: "from the last release to HEAD, back and again while users work (--long)",
    run: () =>
      process.env.SLIPWAY_TEST_LONG === "1"
        ? single("upgrade", process.execPath, ["test/upgrade/main.ts", "--kills", "5,15,25"])
        : Promise.resolve({ ...none, skipped: 1 }),
  },
  permissions: {
    about: "every permission that the chart grants was needed by a request of the stages before",
    run: () => permissions(recordedPermissions),
  },
  // The last ones: what the stack has is lost.
  ledger: {
    about:
      "one instance of the ledger becomes two, whose primary fails again and again (--long, unless the stack is kept)",
    run: () =>
      process.env.SLIPWAY_TEST_LONG === "1" && !isStackKept
        ? single("ledger", process.execPath, ["test/ledger/main.ts"])
        : Promise.resolve({ ...none, skipped: 1 }),
  },
  recovery: {
    about: "the stack is destroyed, and restored from a backup of the platform (--long, unless it is kept)",
    run: () =>
      process.env.SLIPWAY_TEST_LONG === "1" && !isStackKept
        ? single("recovery", process.execPath, ["test/recovery/main.ts"])
        : Promise.resolve({ ...none, skipped: 1 }),
  },
};

/**
 * Unit tests take about a minute on two processors as fast as most. On some that are half as fast all end-to-end files at once had seventy tasks
 * wait for them, and what the platform and Kubernetes do within seconds took longer than their limits.
 */
const SLOW_UNIT_SECONDS = 80;

/** Runs the unit tests; where they are slow, fewer files run at a time from then on: see vitest.config.ts. */
async function unit(): Promise<Counts> {
  const start = performance.now();
  const counts = await vitest("unit");
  if ((performance.now() - start) / 1000 > SLOW_UNIT_SECONDS) {
    process.env.SLIPWAY_TEST_SLOW ??= "1";
    console.log("test: a slow machine, by the unit tests: fewer files of a stage at a time");
  }
  return counts;
}

function usage(): string {
  const lines = (of: typeof ownStages) =>
    Object.entries(of).map(([name, stage]) => `  ${name.padEnd(18)} ${stage.about}`);
  return `usage: hack/test.sh [--only STAGE,...] [--keep] [--long] [--cluster kind]

Stages, in order:
${lines(ownStages).join("\n")}

With --cluster kind, on Docker or podman:
${lines(kindStages).join("\n")}

  --only     run just these stages
  --keep     leave the stack running at the end (one that ran before is always left)
  --long     the long forms of tests that have one
  --cluster  kind: its stages, in place of the others
`;
}

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    keep: { type: "boolean", default: false },
    long: { type: "boolean", default: false },
    cluster: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(usage());
  process.exit(0);
}
if (values.cluster !== undefined && values.cluster !== "kind") {
  console.error(`test: --cluster is kind, not ${values.cluster}`);
  process.exit(2);
}
const isKind = values.cluster === "kind";
const stages = isKind ? kindStages : ownStages;
const chosen = values.only?.split(",") ?? Object.keys(stages);
const unknown = chosen.filter((name) => !(name in stages));
if (unknown.length > 0) {
  console.error(`test: no stage ${unknown.join(", ")}\n${usage()}`);
  process.exit(2);
}
if (values.long) {
  process.env.SLIPWAY_TEST_LONG = "1";
}
// Hundreds of processes are started that load the same modules.
process.env.NODE_COMPILE_CACHE ??= join(root, ".slipway", "compile-cache");

const recordedPermissions = join(logs, "permissions");
process.env[RECORD_FOLDER_VARIABLE] ??= recordedPermissions;
if (chosen.includes("integration")) {
  await rm(recordedPermissions, { recursive: true, force: true });
}
await mkdir(logs, { recursive: true });
if (!isKind && chosen.length === Object.keys(stages).length) {
  removeFigures();
}
const ranBefore = existsSync(join(root, ".slipway", "stack.env"));
const isStarted = chosen.includes("up") || chosen.includes("up-nodes");
const isStackKept = !isStarted || ranBefore || values.keep;
let total = none;
const rows: string[] = [];
const results: StageResult[] = [];
const failed: string[] = [];

/** Runs a stage, counts it, and notes how long it took. */
async function count(name: string, isBeside: boolean): Promise<Counts> {
  const stage = stages[name];
  if (stage === undefined) {
    return none;
  }
  console.log(`\n== ${name}: ${stage.about}${isBeside ? " (meanwhile, shown at its end)" : ""}`);
  const start = performance.now();
  const before = processorTimes();
  const counts = await stage.run(isBeside);
  const seconds = Math.round((performance.now() - start) / 1000);
  const during = isBeside ? `beside ${stage.beside}` : busy(before, processorTimes());
  rows.push(`${name.padEnd(18)} ${String(seconds).padStart(5)} s  ${closingLine(counts)}, ${during}`);
  results.push({ name, about: stage.about, seconds, ...counts });
  total = add(total, counts);
  if (counts.failed > 0) {
    failed.push(name);
  }
  return counts;
}

/** Runs the stages that run while this one does, one after the other: all of them together would leave it no processor. */
async function countBesides(name: string): Promise<void> {
  for (const other of chosen.filter((one) => stages[one]?.beside === name)) {
    await count(other, true);
  }
}

for (const name of chosen) {
  if (chosen.includes(stages[name]?.beside ?? "")) {
    continue;
  }
  const [counts] = await Promise.all([count(name, false), countBesides(name)]);
  if (["up", "up-nodes"].includes(name) && counts.failed > 0) {
    console.error("test: the stack did not come up, so what needs it was not run; see the lines above");
    break;
  }
}
if (!isStackKept) {
  await run("down", "hack/down.sh", ["--purge"]);
}

for (const name of failed) {
  console.log(`\n== ${name} failed:\n${(await failureDetails(name)).map((line) => `  ${line}`).join("\n")}`);
}
console.log(`\nlongest files:\n${(await longestFiles(15)).join("\n")}`);
await writeSummary(results, !isKind && results.length === Object.keys(stages).length);
console.log(`\n${rows.join("\n")}\nlogs: .slipway/logs/test\n`);
console.log(closingLine(total));
process.exit(total.failed > 0 ? 1 : 0);

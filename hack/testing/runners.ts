/** How the parts of the test suite are run and counted. */
import { spawn } from "node:child_process";
import { createWriteStream, existsSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { compileFlags } from "../cluster/binaries.ts";
import { ensurePackages } from "../cluster/packages.ts";
import { goEnvironment } from "../cluster/processes.ts";
import { spawnNice } from "../lib/nice.ts";
import { root } from "../lib/paths.ts";
import { add, type Counts, closingLine, goCounts, junitCounts, none, vitestCounts } from "./counts.ts";
import { failedGoOutput, failedTests, tail } from "./failures.ts";
import { grantedPermissions, unusedPermissions } from "./granted-permissions.ts";
import { fileTimes, longest } from "./longest.ts";
import { permissionsInLog } from "./platform-calls.ts";

/** Where each part leaves its output and its report. */
export const logs = join(root, ".slipway", "logs", "test");
/** Folders with Go tests, each in a module of its own or with others. */
const goPackages = [
  "hack/cluster/netpol",
  "hack/cluster/volumes",
  "hack/images/sample-http",
  "hack/images/base/static",
];
/** As programs are built, see compileFlags. */
const goTestEnvironment = { ...process.env, ...goEnvironment, CGO_ENABLED: "0" };
/** Debian packages without which Go tests of rules and file systems, which only root can try, would skip. */
const goTestPackages = ["iproute2", "nftables", "xfsprogs"];
/** Debian packages that tests need and the stack does not: PostgreSQL's server tools. */
const testPackages = ["postgresql"];

interface Outcome {
  readonly code: number;
  readonly output: string;
}
/** What commands wrote, by their names. */
const outputs = new Map<string, string>();

interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly quiet?: boolean;
  /** Beside another stage it is printed at its end, and uses only processors that the other does not. */
  readonly isBeside?: boolean;
}

/** Runs a command in the repository's root; its output goes to the terminal and to `.slipway/logs/test/<name>.log`. */
export function run(
  name: string,
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Outcome> {
  const log = createWriteStream(join(logs, `${name}.log`));
  const { cwd = root, env, isBeside = false } = options;
  const child = isBeside
    ? spawnNice(command, args, { cwd, env, niceness: "idle" })
    : spawn(command, args, { cwd, env });
  child.stdin.end();
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      log.write(chunk);
      if (options.quiet !== true && !isBeside) {
        process.stdout.write(chunk);
      }
    });
  }
  return new Promise((resolve) => {
    const finish = (code: number): void => {
      log.end();
      const output = Buffer.concat(chunks).toString("utf8");
      outputs.set(name, output);
      if (isBeside) {
        console.log(`\n== ${name}\n${output}`);
      }
      resolve({ code, output });
    };
    child.once("error", (error) => {
      chunks.push(Buffer.from(`${command}: ${error.message}\n`));
      finish(127);
    });
    child.once("close", (code) => finish(code ?? 1));
  });
}

/** A command that is one test as a whole. */
export async function single(
  name: string,
  command: string,
  args: readonly string[],
  isBeside = false,
): Promise<Counts> {
  const { code } = await run(name, command, args, { isBeside });
  return code === 0 ? { ...none, passed: 1 } : { ...none, failed: 1 };
}

/** Starts a stack for end-to-end tests: hack/up.sh with these arguments. */
export function up(name: string, args: readonly string[] = []): Promise<Counts> {
  // The tests create more projects a minute than a client may.
  process.env.SLIPWAY_RATE_LIMIT_SCALE ??= "100";
  // And wait for limits that are hours otherwise.
  process.env.SLIPWAY_VALUES ??= join(root, "test/e2e/values.yaml");
  return single(name, "hack/up.sh", args);
}

/** Reports of Vitest that this run has written. */
const reports: string[] = [];

/** The `count` test files of this run that took longest, as lines. */
export async function longestFiles(count: number): Promise<string[]> {
  const times = await Promise.all(
    reports.map(async (report) => fileTimes(await readFile(report, "utf8"), root)),
  );
  return longest(times.flat(), count);
}

/** Runs projects of Vitest as one stage; those of one group share its workers, see vitest.config.ts. */
export async function vitest(
  name: string,
  { projects = [name], files = [] }: { projects?: readonly string[]; files?: readonly string[] } = {},
): Promise<Counts> {
  const report = join(logs, `${name}.json`);
  await rm(report, { force: true });
  const args = [
    "run",
    ...projects.flatMap((project) => ["--project", project]),
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${report}`,
    ...files,
  ];
  const { code } = await run(name, "vitest", args);
  if (!existsSync(report)) {
    return { ...none, failed: 1 };
  }
  reports.push(report);
  const counts = vitestCounts(await readFile(report, "utf8"));
  // An unhandled error outside of any test fails the run without failing a test.
  return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}

/** The Go tests. */
export async function go(): Promise<Counts> {
  let counts = none;
  if (process.getuid?.() === 0 && existsSync("/usr/bin/apt-get")) {
    await ensurePackages(goTestPackages, join(logs, "packages.log"));
  }
  for (const folder of goPackages) {
    const name = `go-${folder.replaceAll("/", "-")}`;
    const { code, output } = await run(name, "go", ["test", ...compileFlags, "-json", "./..."], {
      cwd: join(root, folder),
      env: goTestEnvironment,
      quiet: true,
    });
    const own = goCounts(output);
    const counted = code !== 0 && own.failed === 0 ? { ...own, failed: 1 } : own;
    console.log(`  ${folder}: ${closingLine(counted)}`);
    if (counted.failed > 0) {
      console.log(output);
    }
    counts = add(counts, counted);
  }
  return counts;
}

/** The API against its own OpenAPI document: one test an operation, and one for calls that follow one another. */
export async function contract(): Promise<Counts> {
  const report = join(logs, "contract.xml");
  await rm(report, { force: true });
  await ensurePackages(testPackages, join(logs, "packages.log"));
  const args = ["test/contract/run.ts", "--report", report];
  const { code } = await run("contract", process.execPath, args);
  const junit = existsSync(report) ? await readFile(report, "utf8") : "";
  // One that was killed has written nothing, or an empty file.
  if (junit === "") {
    return { ...none, failed: 1 };
  }
  const counts = junitCounts(junit);
  return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}

/**
 * Compares the permissions that the chart grants with those that requests needed: on the stack, by its audit log, and on test
 * clusters, by what they recorded in `folder`.
 */
export async function permissions(folder: string): Promise<Counts> {
  const used = new Set<string>();
  const stackLogs = join(root, ".slipway", "logs");
  for (const file of (await namesIn(stackLogs)).filter((name) => /^audit.*\.log$/.test(name))) {
    for (const name of await permissionsInLog(join(stackLogs, file))) {
      used.add(name);
    }
  }
  for (const file of await namesIn(folder)) {
    for (const name of (await readFile(join(folder, file), "utf8")).split("\n")) {
      used.add(name);
    }
  }
  const problems = unusedPermissions(used);
  console.log(`  ${grantedPermissions().length} permissions are granted`);
  outputs.set("permissions", problems.join("\n"));
  for (const problem of problems) {
    console.log(`  ${problem}`);
  }
  return problems.length === 0 ? { ...none, passed: 1 } : { ...none, failed: 1 };
}

const namesIn = async (folder: string): Promise<string[]> => (existsSync(folder) ? readdir(folder) : []);

/** A project of Vitest that needs PostgreSQL. */
export async function withPostgres(name: string): Promise<Counts> {
  const installed = await ensurePackages(testPackages, join(logs, "packages.log"));
  if (installed.length > 0) {
    console.log(`  installed ${installed.join(", ")}`);
  }
  return vitest(name);
}

/** What is printed again of a stage that failed: its failed tests, or else the end of its output. */
export async function failureDetails(name: string): Promise<string[]> {
  const report = join(logs, `${name}.json`);
  const tests = existsSync(report) ? failedTests(await readFile(report, "utf8"), root) : [];
  if (tests.length > 0) {
    return tests;
  }
  if (name !== "go") {
    return tail(outputs.get(name) ?? "");
  }
  const parts = [...outputs].filter(([part]) => part.startsWith("go-"));
  return tail(parts.map(([, output]) => failedGoOutput(output)).join("\n"));
}

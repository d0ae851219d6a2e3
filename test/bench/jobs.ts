/**
 * `npm run bench:jobs`: how late runs of many jobs are admitted, beside plain CronJobs on the same cluster; how soon they are charged; what
 * the operator takes. Real etcd, kube-apiserver, controller-manager and scheduler, fake nodes, PostgreSQL without fsync (the
 * ledger's own rate is measured with it, see job-ledger.ts). Flags: --jobs 1000, --spread-minutes 5, --minutely 3 (minutes;
 * 0 for none), --limits default,raised (also: doubled), --ledger-seconds 10 (0 for none).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { controllerLimits } from "../../hack/cluster/test-cluster.ts";
import { root } from "../../hack/lib/paths.ts";
import { EVERY_MINUTE, NOT_NOW, startJobPlatform } from "../kit/processes/job-platform.ts";
import { OperatorProcess } from "../kit/processes/operator-process.ts";
import { readJobWrites, spreadOf } from "./job-audit.ts";
import { cronAt, JobLoad } from "./job-load.ts";
import { ProcessorLog, type Processors } from "./job-processors.ts";
import { type AtOnce, type Charged, printReport, type Report } from "./job-report.ts";
import { cpuSeconds } from "./load.ts";
import { residentMiB } from "./setup.ts";

const { values: flags } = parseArgs({
  options: {
    jobs: { type: "string", default: "1000" },
    "spread-minutes": { type: "string", default: "5" },
    minutely: { type: "string", default: "3" },
    limits: { type: "string", default: "default,raised" },
    "ledger-seconds": { type: "string", default: "10" },
  },
});
const jobs = Number(flags.jobs);
const MINUTE = 60_000;
const cleanups: (() => unknown)[] = [];
const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`);

/** A full minute that leaves the time to change every schedule before it. */
const minuteAfter = (ms: number) => new Date(Math.ceil((Date.now() + ms) / MINUTE) * MINUTE);
/** Time in which all schedules are changed; more once it was not enough. */
let changeMs = 20_000 + jobs * 100;
const sleepUntil = (at: number) => sleep(Math.max(0, at - Date.now()));

/** Sets schedules to a future minute; a busy machine gets another, later one. */
async function dueAt(what: string, change: (minute: Date) => Promise<void>): Promise<Date> {
  for (let tries = 0; tries < 4; tries += 1) {
    const at = minuteAfter(changeMs);
    say(`${what} at ${at.toISOString()}`);
    await change(at);
    if (Date.now() < at.getTime()) {
      return at;
    }
    changeMs *= 2;
  }
  throw new Error("the schedules were never changed in time");
}

async function bench(): Promise<boolean> {
  const limits = flags.limits.split(",") as (keyof typeof controllerLimits)[];
  const platform = await startJobPlatform({
    organizations: 4,
    nodes: 5,
    limits: limits[0],
    flags: { "audit-log-maxsize": 4_000 },
  });
  cleanups.push(() => platform.stop());
  const { cluster } = platform;
  const operator = new OperatorProcess({
    kubeconfig: cluster.kubeconfig,
    ledgerUrl: platform.postgres.url,
    identity: "operator-0",
    dir: cluster.dir,
    env: { SLIPWAY_LOG_LEVEL: "warn" },
  });
  operator.start();
  cleanups.push(() => operator.kill());
  await platform.provisioned();
  const load = new JobLoad(platform, jobs);
  cleanups.push(() => load.stop());

  say(`making ${jobs} jobs`);
  const made = performance.now();
  await load.create();
  say(`made in ${Math.round((performance.now() - made) / 1000)} s`);

  let peakMiB = 0;
  const watching = setInterval(() => {
    peakMiB = Math.max(peakMiB, residentMiB(operator.pid));
  }, 1_000);
  cleanups.push(() => clearInterval(watching));

  /** Waits until every occurrence of some minutes is charged or was missed. */
  const untilDecided = async (from: Date, to: Date, due: number, missedBefore: number, timeoutMs: number) => {
    const end = performance.now() + timeoutMs;
    for (;;) {
      const charged = await load.charged(from, to);
      const missed = total(load.missed()) - missedBefore;
      if (charged.length + missed >= due || performance.now() > end) {
        return charged;
      }
      await sleep(1_000);
    }
  };

  /** What every process took from a minute until the last of some moments, in seconds after it. */
  const processorsOf = (used: ProcessorLog, at: Date, moments: readonly number[]): Processors => {
    used.stop();
    return used.until(at.getTime() + Math.max(...moments) * 1_000);
  };
  const pids = () => ({ ...cluster.pids(), operator: operator.pid });

  /** All jobs due at one minute. */
  const atOnce = async (): Promise<AtOnce> => {
    const at = await dueAt("all jobs", (minute) => load.schedule(() => cronAt(minute)));
    const missedBefore = load.missed();
    await sleepUntil(at.getTime());
    const cpu = cpuSeconds(operator.pid);
    const used = new ProcessorLog(pids());
    const charged = await untilDecided(at, at, jobs, total(missedBefore), 900_000);
    const seconds = (Date.now() - at.getTime()) / 1000;
    const spent = cpuSeconds(operator.pid) - cpu;
    // What is written after the charge belongs to the run as well.
    await sleep(10_000);
    const writes = await readJobWrites(cluster.auditLog, at);
    const created = since(writes.created, "bench-", at);
    return {
      created: spreadOf(created),
      processors: processorsOf(used, at, created),
      admitted: spreadOf(since(writes.admitted, "bench-", at)),
      started: spreadOf(charged.map(({ started }) => (started.getTime() - at.getTime()) / 1000)),
      charged: lag(charged),
      missed: difference(load.missed(), missedBefore),
      writes: writes.operator,
      conflicts: writes.conflicts,
      cpuSeconds: spent,
      seconds,
    };
  };

  const plainAtOnce = async () => {
    const at = await dueAt("plain CronJobs", (minute) => load.createPlain(minute));
    await sleepUntil(at.getTime());
    const used = new ProcessorLog(pids());
    let starts: number[] = [];
    for (const end = performance.now() + 900_000; performance.now() < end; await sleep(1_000)) {
      starts = await load.plainStarts();
      if (starts.length >= jobs) {
        break;
      }
    }
    const { created } = await readJobWrites(cluster.auditLog, at);
    await load.removePlain();
    const made = since(created, "plain-", at);
    return {
      created: spreadOf(made),
      processors: processorsOf(used, at, made),
      started: spreadOf(starts.map((start) => (start - at.getTime()) / 1000)),
    };
  };

  /** Over the hour, so that each minute has its share. */
  const spread = async (minutes: number) => {
    await load.schedule((index) => `${index % 60} * * * *`);
    const from = minuteAfter(5_000);
    const to = new Date(from.getTime() + (minutes - 1) * MINUTE);
    const wanted = Array.from({ length: minutes }, (_, index) => (from.getUTCMinutes() + index) % 60);
    const due = load.refs.filter((_, index) => wanted.includes(index % 60)).length;
    say(`${due} of ${jobs} over ${minutes} minutes from ${from.toISOString()}`);
    const missedBefore = load.missed();
    await sleepUntil(to.getTime());
    const charged = await untilDecided(from, to, due, total(missedBefore), 120_000);
    const { admitted } = await readJobWrites(cluster.auditLog, from);
    const skews = charged.flatMap(({ name, scheduled }) => {
      const at = admitted.get(name);
      return at === undefined ? [] : [(at - scheduled.getTime()) / 1000];
    });
    await load.schedule(() => NOT_NOW);
    return {
      admitted: spreadOf(skews),
      charged: lag(charged),
      missed: difference(load.missed(), missedBefore),
    };
  };

  /** All of them in every minute: what of it can be kept up. */
  const minutely = async (minutes: number) => {
    await load.schedule(() => EVERY_MINUTE);
    const from = minuteAfter(1_000);
    const to = new Date(from.getTime() + (minutes - 1) * MINUTE);
    say(`all ${jobs} in each of ${minutes} minutes from ${from.toISOString()}`);
    await sleepUntil(from.getTime());
    const missedBefore = load.missed();
    const cpu = cpuSeconds(operator.pid);
    await sleepUntil(to.getTime() + MINUTE - 500);
    const used = cpuSeconds(operator.pid) - cpu;
    await load.schedule(() => NOT_NOW);
    await sleep(30_000);
    const charged = await load.charged(from, to);
    return {
      runs: charged.length,
      due: jobs * minutes,
      charged: lag(charged),
      missed: difference(load.missed(), missedBefore),
      cores: used / (minutes * 60),
    };
  };

  const report: Report = { jobs, load: loadavg()[0] ?? 0, limits: [], memoryMiB: 0 };
  for (const [index, name] of limits.entries()) {
    if (index > 0) {
      await cluster.controllerManager.restart(controllerLimits[name]);
    }
    say(`controller-manager with ${name} limits`);
    const spreadMinutes = Number(flags["spread-minutes"]);
    report.limits.push({
      name,
      spread: spreadMinutes > 0 ? await spread(spreadMinutes) : undefined,
      plain: await plainAtOnce(),
      atOnce: await atOnce(),
      minutely:
        Number(flags.minutely) > 0 && name === "raised" ? await minutely(Number(flags.minutely)) : undefined,
    });
    await load.schedule(() => NOT_NOW);
  }
  report.memoryMiB = peakMiB;
  report.load = Math.max(report.load, loadavg()[0] ?? 0);
  return printReport(report);
}

const total = (counts: Record<string, number>) =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

function difference(after: Record<string, number>, before: Record<string, number>): Record<string, number> {
  const grown = Object.entries(after).map(
    ([reason, count]) => [reason, count - (before[reason] ?? 0)] as const,
  );
  return Object.fromEntries(grown.filter(([, count]) => count > 0));
}

/** Seconds after a moment, of those whose name begins so. */
const since = (times: Map<string, number>, prefix: string, at: Date) =>
  [...times].filter(([name]) => name.startsWith(prefix)).map(([, time]) => (time - at.getTime()) / 1000);

/** From the end of a container, reported in whole seconds, to its charge in the ledger. */
const lag = (charged: readonly { finished: Date; recorded: Date }[]): Charged =>
  spreadOf(charged.map(({ finished, recorded }) => (recorded.getTime() - finished.getTime()) / 1000));

/** How fast the ledger takes runs; prints its own results. */
async function ledgerBench(seconds: string): Promise<boolean> {
  const child = spawn(process.execPath, [join(root, "test/bench/job-ledger.ts"), seconds], {
    stdio: "inherit",
  });
  const [code] = (await once(child, "exit")) as [number | null];
  return code === 0;
}

try {
  let reached = await bench();
  if (Number(flags["ledger-seconds"]) > 0) {
    reached = (await ledgerBench(flags["ledger-seconds"])) && reached;
  }
  if (!reached) {
    process.exitCode = 1;
  }
} finally {
  for (const cleanup of cleanups.reverse()) {
    await cleanup();
  }
}
